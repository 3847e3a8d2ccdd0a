// The mean and the sum of squared deviations of each result from those of its parts: each part's squares
// count from its own mean, so the distance of that from the mean of all is added.  One workgroup for each.
// uses: grid group_tree
alias Reduced = f32;
const WG = 64u;
struct Params {
  n: u32, // results
  count: u32, // elements for each
  parts: u32,
  each: u32, // elements of a part; the last may have fewer
}
@group(0) @binding(0) var<storage, read>       found: array<vec2<f32>>; // (parts, n)
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>; // (n)
@group(0) @binding(2) var<uniform>             p: Params;

fn size_of(part: u32) -> f32 { return f32(min(p.each, p.count - part * p.each)); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (g >= p.n) {
    return;
  }
  var sum = 0.0;
  for (var k = local; k < p.parts; k += WG) {
    sum += found[k * p.n + g].x * size_of(k);
  }
  let middle = group_add(sum, local) / f32(p.count);
  sum = 0.0;
  for (var k = local; k < p.parts; k += WG) {
    let part = found[k * p.n + g];
    sum += part.y + (part.x - middle) * (part.x - middle) * size_of(k);
  }
  let squares = group_add(sum, local);
  if (local == 0u) {
    stats[g] = vec2<f32>(middle, squares);
  }
}

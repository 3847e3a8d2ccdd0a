// The mean and the sum of squared deviations of each part of each row, for few long rows: their parts
// have workgroups of their own.  group_norm_apply puts them together.
// uses: grid group_tree group_norm_params
alias Reduced = f32;
const WG = 256u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;          // (rows, cols)
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>; // (rows, parts)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (g >= p.rows * p.parts) {
    return;
  }
  let quads = p.cols / 4u;
  let each = (quads + p.parts - 1u) / p.parts;
  let at = g / p.parts * quads;
  let first = min(quads, g % p.parts * each);
  let end = min(quads, first + each);
  var sum = vec4<f32>();
  for (var i = first + local; i < end; i += WG) {
    sum += quad_get(x[at + i]);
  }
  let n = f32(max(end - first, 1u) * 4u);
  let middle = group_add(dot(sum, vec4<f32>(1.0)), local) / n;
  sum = vec4<f32>();
  for (var i = first + local; i < end; i += WG) {
    let off = quad_get(x[at + i]) - middle;
    sum += off * off;
  }
  let squares = group_add(dot(sum, vec4<f32>(1.0)), local);
  if (local == 0u) {
    stats[p.first * p.parts + g] = vec2<f32>(middle, squares);
  }
}

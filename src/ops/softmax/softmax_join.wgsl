// Each line's maximum and the sum of e^(x - maximum) from those of its parts.  One workgroup per line.
// uses: grid group_tree
alias Reduced = f32;
const WG = 64u;
struct Params {
  lines: u32,
  parts: u32,
}
@group(0) @binding(0) var<storage, read>       found: array<vec2<f32>>; // (parts, lines)
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>; // (lines)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let line = grid_group(group, groups);
  if (line >= p.lines) {
    return;
  }
  var most = found[line].x;
  for (var k = local; k < p.parts; k += WG) {
    most = max(most, found[k * p.lines + line].x);
  }
  most = group_max(most, local);
  var sum = 0.0;
  for (var k = local; k < p.parts; k += WG) {
    let part = found[k * p.lines + line];
    sum += exp(part.x - most) * part.y;
  }
  sum = group_add(sum, local);
  if (local == 0u) {
    stats[line] = vec2<f32>(most, sum);
  }
}

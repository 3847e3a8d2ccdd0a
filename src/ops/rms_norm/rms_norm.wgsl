// y = x / sqrt(mean(x²) + eps) · w over the last dim, whose size is a multiple of 4.
// One workgroup per row.
// uses: grid rms_norm_params
alias Reduced = f32;
const WG = 256u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>; // (rows, quads)
@group(0) @binding(1) var<storage, read>       w: array<Quad>; // (quads)
@group(0) @binding(2) var<storage, read_write> y: array<Quad>; // (rows, quads)
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = grid_group(group, groups);
  if (row >= p.rows) {
    return;
  }
  let at = row * p.quads;
  var sum = 0.0;
  for (var i = local; i < p.quads; i += WG) {
    let v = quad_get(x[at + i]);
    sum += dot(v, v);
  }
  let factor = inverseSqrt(group_add(sum, local) / p.cols + p.eps);
  for (var i = local; i < p.quads; i += WG) {
    y[at + i] = quad_put(quad_get(x[at + i]) * factor * quad_get(w[i]));
  }
}

// y = factors · Σ parts / norms + bias: what q4_matrix left, in slices of k and padded to its tiles.
// One thread per four columns.
// uses: grid q4_params q4_put4
const WG = 64u;
@group(0) @binding(0) var<storage, read>       parts: array<vec4<f32>>; // (slices, rows, width)
@group(0) @binding(1) var<storage, read>       factors: array<f32>;     // (m)
@group(0) @binding(2) var<storage, read>       norms: array<f32>;       // (cols)
@group(0) @binding(3) var<storage, read>       bias: array<vec4<u32>>;  // (cols) or (m, cols)
@group(0) @binding(4) var<storage, read_write> y: array<Quad>;          // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let quads = p.n / 4u;
  let index = grid_group(group, groups) * WG + local;
  let m = index / quads;
  let n = index % quads * 4u;
  if (m >= p.m) {
    return;
  }
  var sum = vec4<f32>();
  for (var slice = 0u; slice < p.slices; slice++) {
    sum += parts[((slice * p.rows + m) * p.width + n) / 4u];
  }
  put4(m, n, sum);
}

// y = what follows Σ parts: what matmul left in slices of k. One thread per four columns.
// uses: grid either linear_params linear_end activations not_a_number
const WG = 64u;
@group(0) @binding(0) var<storage, read>       parts: array<f32>; // (slices, m, n)
@group(0) @binding(1) var<storage, read>       bias: array<u32>;  // by bias_m, bias_n
@group(0) @binding(2) var<storage, read>       rest: array<u32>;  // as y
@group(0) @binding(3) var<storage, read_write> y: array<u32>;     // (m, cols)
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let quads = (p.n + 3u) / 4u;
  let index = grid_group(group, groups) * WG + local;
  let m = index / quads;
  let n = index % quads * 4u;
  if (m >= p.m) {
    return;
  }
  var sum = vec4<f32>();
  for (var slice = 0u; slice < p.slices; slice++) {
    let at = (slice * p.m + m) * p.n + n; // past the last column is the next row's, and unused
    sum += vec4<f32>(parts[at], parts[at + 1u], parts[at + 2u], parts[at + 3u]);
  }
  linear_put(0u, m, n, sum);
}

// What q4_sums does, for projections of one x that q4_gemm computed as one: columns go to y0, then y1,
// then y2, and biases lie behind each other as weights do.
// One thread per four columns; all counts of columns are multiples of four.
// uses: grid either q4_params q4_hand q4_biases
const WG = 64u;
@group(0) @binding(0) var<storage, read>       parts: array<vec4<f32>>; // (slices, m, n)
@group(0) @binding(1) var<storage, read>       bias: array<u32>;        // (n)
@group(0) @binding(2) var<storage, read_write> y0: array<Quad>;         // (m, q_cols)
@group(0) @binding(3) var<storage, read_write> y1: array<Quad>;         // (m, k_cols)
@group(0) @binding(4) var<storage, read_write> y2: array<Quad>;         // (m, the others)
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let quads = p.n / 4u;
  let index = grid_group(group, groups) * WG + local;
  let m = index / quads;
  let quad = index % quads;
  if (m >= p.m) {
    return;
  }
  var sum = bias_quad(4u * quad);
  for (var slice = 0u; slice < p.slices; slice++) {
    sum += parts[(slice * p.m + m) * quads + quad];
  }
  hand(m, 4u * quad, sum);
}

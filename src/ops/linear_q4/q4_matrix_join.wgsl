// Projections of one x as a single product (q4_tensor) over all of k, without biases: columns go to y0,
// then y1, then y2.
// uses: grid q4_params q4_hand q4_unscaled q4_tensor q4_whole
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (m, k padded to 64) halves of q4_half
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       norms: array<f32>;   // (cols) powers of two that scales are multiplied by
@group(0) @binding(4) var<storage, read>       factors: array<f32>; // (m)
@group(0) @binding(5) var<storage, read_write> y0: array<Quad>;     // (m, q_cols)
@group(0) @binding(6) var<storage, read_write> y1: array<Quad>;     // (m, k_cols)
@group(0) @binding(7) var<storage, read_write> y2: array<Quad>;     // (m, the others)
@group(0) @binding(8) var<uniform>             p: Params;

fn put4(m: u32, n: u32, sum: vec4<f32>) {
  if (m < p.m && n < p.n) {
    hand(m, n, unscaled(m, n, sum));
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  whole_tile(grid_group(group, groups), local);
}

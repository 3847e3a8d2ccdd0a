// A tile of y = x · Wᵀ (q4_tensor) over all of k, with factors, and a bias, a residual or a gate.
// uses: grid q4_params q4_put4 q4_tensor q4_whole
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (m, k padded to 64) halves of q4_half
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       norms: array<f32>;   // (cols) powers of two that scales are multiplied by
@group(0) @binding(4) var<storage, read>       factors: array<f32>; // (m)
@group(0) @binding(5) var<storage, read>       bias: array<vec4<u32>>; // (cols) or (m, cols)
@group(0) @binding(6) var<storage, read_write> y: array<Quad>;      // (m, cols)
@group(0) @binding(7) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  whole_tile(grid_group(group, groups), local);
}

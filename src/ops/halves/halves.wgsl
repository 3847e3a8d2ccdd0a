// y = x as floats of 2 bytes.  One thread per word of y.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32, // elements
}
@group(0) @binding(0) var<storage, read>       x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 2u < p.n) {
    y[i] = pack2x16float(x[i]);
  }
}

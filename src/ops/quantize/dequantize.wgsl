// y = (x − zero) · scale. One thread per four elements.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32, // elements
  scale: f32,
  zero: f32,
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;
@group(0) @binding(1) var<storage, read_write> y: array<Into>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u < p.n) {
    y[i] = into((vec4<f32>(quad_get(x[i])) - p.zero) * p.scale);
  }
}

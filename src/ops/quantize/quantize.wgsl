// y = clamp(round(x · inverse) + zero, low, high), NaN as 0. One thread per four elements.
// uses: grid not_a_number
override WG: u32 = 64u;
struct Params {
  n: u32, // elements
  inverse: f32,
  zero: f32,
  low: f32,
  high: f32,
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;
@group(0) @binding(1) var<storage, read_write> y: array<Into>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  let v = quad_get(x[i]);
  let q = min(max(round(v * p.inverse) + p.zero, vec4<f32>(p.low)), vec4<f32>(p.high));
  y[i] = into(select(q, vec4<f32>(), is_nan(v)));
}

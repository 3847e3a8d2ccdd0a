// y[r] = ((column + offset) * stride, (row + offset) * stride) for each of the height * width places
// of a plane, row by row.  One thread per two places.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32, // elements of y
  width: u32,
  stride: f32,
  offset: f32,
}
@group(0) @binding(0) var<storage, read_write> y: array<Quad>; // (height * width, 2)
@group(0) @binding(1) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  let r = vec2<u32>(i * 2u, i * 2u + 1u);
  let at = vec4<u32>(r.x % p.width, r.x / p.width, r.y % p.width, r.y / p.width);
  y[i] = quad_put((vec4<f32>(at) + p.offset) * p.stride);
}

// y[i] = start + i * step.  One thread per four elements.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32,     // elements
  start: u32, // bits of an element
  step: u32,
  first: u32, // i of the first element: where y is split
}
@group(0) @binding(0) var<storage, read_write> y: array<Quad>;
@group(0) @binding(1) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  let at = Elem4(vec4<u32>(p.first + 4u * i) + vec4<u32>(0u, 1u, 2u, 3u));
  y[i] = quad_put(bitcast<Elem4>(vec4<u32>(p.start)) + at * bitcast<Elem4>(vec4<u32>(p.step)));
}

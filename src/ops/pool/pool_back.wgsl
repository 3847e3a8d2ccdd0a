// The gradient of the largest element's pooling: dx[i] = the sum of dy over the windows whose place is
// i.  One thread per word of dx, which looks at all windows that cover its elements.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32, // elements of dx
  unused0: u32,
  unused1: vec2<u32>,
  x_size: vec4<u32>, // depth, height, width
  y_size: vec4<u32>,
  kernel: vec4<u32>,
  stride: vec4<u32>,
  pad: vec4<u32>,
  dilation: vec4<u32>,
}
@group(0) @binding(0) var<storage, read>       dy: array<u32>;     // (planes, y_size)
@group(0) @binding(1) var<storage, read>       places: array<u32>; // (planes, y_size)
@group(0) @binding(2) var<storage, read_write> dx: array<u32>;     // (planes, x_size)
@group(0) @binding(3) var<uniform>             p: Params;

fn value(e: u32) -> f32 {
  let row = e / p.x_size.z;
  let slice = row / p.x_size.y;
  let plane = slice / p.x_size.x;
  let c = vec3<u32>(slice % p.x_size.x, row % p.x_size.y, e % p.x_size.z) + p.pad.xyz;
  let reach = p.dilation.xyz * (p.kernel.xyz - 1u);
  let step = p.stride.xyz;
  let first = (max(c, reach) - reach + step - 1u) / step;
  let end = min(p.y_size.xyz, c / step + 1u);
  let place = e - plane * (p.x_size.x * p.x_size.y * p.x_size.z);
  var sum = 0.0;
  for (var i = first.x; i < end.x; i++) {
    for (var j = first.y; j < end.y; j++) {
      for (var k = first.z; k < end.z; k++) {
        let o = ((plane * p.y_size.x + i) * p.y_size.y + j) * p.y_size.z + k;
        if (places[o] == place) {
          sum += elem_get(dy[o / ELEMS], o % ELEMS);
        }
      }
    }
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    packed = elem_put(packed, lane, value(min(word * ELEMS + lane, p.n - 1u)));
  }
  dx[word] = packed;
}

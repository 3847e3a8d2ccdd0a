// y = requantised max((x − x_zero) · x_scale, least), from other places of x. One thread per word of
// y. WORDS: the words of x and y belong together; else every byte has its own place in x.
// uses: grid q8_requant
override WG: u32 = 64u;
const WORDS = true;
struct Params {
  n: u32,    // bytes of y
  rank: u32, // of the loop nest
  x_scale: f32,
  x_zero: f32,
  least: f32,
  inverse: f32,
  zero: f32,
  low: f32,
  high: f32,
  pad: u32,
  pads: vec2<u32>,
  size: array<vec4<u32>, 2>, // outermost first
  step: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

fn locate(e: u32) -> u32 {
  var rest = e;
  var at = 0u;
  for (var d = p.rank - 1u; d > 0u; d--) {
    let size = p.size[d / 4u][d % 4u];
    at += rest % size * p.step[d / 4u][d % 4u];
    rest /= size;
  }
  return at + rest * p.step[0].x;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  var u: vec4<i32>;
  if (WORDS) {
    u = quad_get(x[i]);
  } else {
    for (var k = 0u; k < 4u; k++) {
      let at = locate(min(i * 4u + k, p.n - 1u));
      u[k] = quad_get(x[at / 4u])[at % 4u];
    }
  }
  y[i] = requant(max((vec4<f32>(u) - p.x_zero) * p.x_scale, vec4<f32>(p.least)));
}

// y = requantised (a − a_zero) · a_scale + alpha · ((b − b_zero) · b_scale), with broadcasting.
// One thread per word of y. WORDS: the words of a, b and y belong together; else every byte has its
// own place in a and in b.
// uses: grid apart q8_requant
override WG: u32 = 64u;
const WORDS = true;
struct Params {
  n: u32,    // bytes of y
  rank: u32, // of the loop nest
  nothing: u32,
  a_scale: f32,
  a_zero: f32,
  b_scale: f32,
  b_zero: f32,
  alpha: f32,
  inverse: f32,
  zero: f32,
  low: f32,
  high: f32,
  size: array<vec4<u32>, 2>, // outermost first
  a_step: array<vec4<u32>, 2>,
  b_step: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       a: array<u32>;
@group(0) @binding(1) var<storage, read>       b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform>             p: Params;

// Where a and b are at step `e` of the nest.
fn locate(e: u32) -> vec2<u32> {
  var rest = e;
  var at = vec2<u32>();
  for (var d = p.rank - 1u; d > 0u; d--) {
    let size = p.size[d / 4u][d % 4u];
    let c = rest % size;
    rest /= size;
    at += c * vec2<u32>(p.a_step[d / 4u][d % 4u], p.b_step[d / 4u][d % 4u]);
  }
  return at + rest * vec2<u32>(p.a_step[0].x, p.b_step[0].x);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  var u: vec4<i32>;
  var v: vec4<i32>;
  if (WORDS) {
    u = quad_get(a[i]);
    v = quad_get(b[i]);
  } else {
    for (var k = 0u; k < 4u; k++) {
      let at = locate(min(i * 4u + k, p.n - 1u));
      u[k] = quad_get(a[at.x / 4u])[at.x % 4u];
      v[k] = quad_get(b[at.y / 4u])[at.y % 4u];
    }
  }
  let left = apart((vec4<f32>(u) - p.a_zero) * p.a_scale);
  let right = apart(p.alpha * apart((vec4<f32>(v) - p.b_zero) * p.b_scale));
  y[i] = requant(left + right);
}

// y[n, c, i, k] = plane (n, c) of x at the place that grid[n, i, k] = (across, down) says, from -1 to
// 1: one element, or several weighted by their distances.  One thread per word of y.
// uses: grid
override WG: u32 = 64u;
const FOUR = 0u;    // between four elements
const NEAREST = 1u;
const SIXTEEN = 2u; // cubic between sixteen
const KIND = FOUR;
struct Params {
  n: u32,        // elements of y
  first: u32,    // plane of the whole tensor that x and y begin with
  channels: u32, // planes for each n
  outside: u32,  // what lies around a plane: 0 zeros, 1 its border, 2 its reflection
  align: u32,    // 1: -1 and 1 are the middles of the outermost elements, else their edges
  unused: u32,
  y_size: vec2<u32>, // height, width
  x_size: vec2<u32>,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;     // (planes, x_size)
@group(0) @binding(1) var<storage, read>       places: array<u32>; // (n, y_size, 2)
@group(0) @binding(2) var<storage, read_write> y: array<u32>;     // (planes, y_size)
@group(0) @binding(3) var<uniform>             p: Params;

var<private> nan_bits: u32 = 0x7fc00000u;
fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
fn is_finite(v: f32) -> bool { return (bitcast<u32>(v) & 0x7f800000u) != 0x7f800000u; }

// From -1 … 1 to elements.
fn scaled(v: f32, size: u32) -> f32 {
  if (p.align == 1u) {
    return (v + 1.0) * 0.5 * f32(size - 1u);
  }
  return ((v + 1.0) * f32(size) - 1.0) * 0.5;
}

fn reflected(c: f32, size: u32) -> f32 {
  let low = select(-0.5, 0.0, p.align == 1u);
  let span = select(f32(size), f32(size - 1u), p.align == 1u);
  if (span == 0.0) {
    return 0.0;
  }
  let off = abs(c - low);
  let times = floor(off / span);
  let rest = off - times * span;
  return select(span - rest, rest, times - 2.0 * floor(times * 0.5) == 0.0) + low;
}

// A coordinate that exists, or one that is clearly outside where zeros are.
fn inside(c: f32, size: u32) -> f32 {
  if (p.outside == 0u) {
    return clamp(c, -8.0, f32(size) + 8.0);
  }
  var v = c;
  if (p.outside == 2u) {
    v = select(0.0, reflected(c, size), is_finite(c));
  }
  return select(clamp(v, 0.0, f32(size - 1u)), 0.0, is_nan(v));
}

fn element(first: u32, row: i32, col: i32) -> f32 {
  if (row < 0 || col < 0 || row >= i32(p.x_size.x) || col >= i32(p.x_size.y)) {
    return 0.0;
  }
  let e = first + u32(row) * p.x_size.y + u32(col);
  return elem_get(x[e / ELEMS], e % ELEMS);
}

fn between_four(first: u32, down: f32, across: f32) -> f32 {
  let h = inside(down, p.x_size.x);
  let w = inside(across, p.x_size.y);
  let row = floor(h);
  let col = floor(w);
  let above = element(first, i32(row), i32(col)) * (col + 1.0 - w)
            + element(first, i32(row), i32(col) + 1) * (w - col);
  let below = element(first, i32(row) + 1, i32(col)) * (col + 1.0 - w)
            + element(first, i32(row) + 1, i32(col) + 1) * (w - col);
  return above * (row + 1.0 - h) + below * (h - row);
}

// Weights of the four elements around a place that is t behind the second.
fn cubic(t: f32) -> vec4<f32> {
  const A = -0.75;
  let far = vec2<f32>(t + 1.0, 2.0 - t);
  let near = vec2<f32>(t, 1.0 - t);
  let f = ((far - 5.0) * A * far + 8.0 * A) * far - 4.0 * A;
  let n = ((A + 2.0) * near - (A + 3.0)) * near * near + 1.0;
  return vec4<f32>(f.x, n.x, n.y, f.y);
}

fn between_sixteen(first: u32, down: f32, across: f32) -> f32 {
  let rows = cubic(down - floor(down));
  let cols = cubic(across - floor(across));
  var sum = 0.0;
  for (var i = 0u; i < 4u; i++) {
    let row = i32(inside(floor(down) + f32(i) - 1.0, p.x_size.x));
    var line = 0.0;
    for (var k = 0u; k < 4u; k++) {
      let col = i32(inside(floor(across) + f32(k) - 1.0, p.x_size.y));
      line += element(first, row, col) * cols[k];
    }
    sum += line * rows[i];
  }
  return sum;
}

fn value(e: u32) -> f32 {
  let plane = p.y_size.x * p.y_size.y;
  let at = (p.first + e / plane) / p.channels * plane + e % plane;
  let first = e / plane * (p.x_size.x * p.x_size.y);
  let across = elem_get(places[at * 2u / ELEMS], at * 2u % ELEMS);
  let down = elem_get(places[(at * 2u + 1u) / ELEMS], (at * 2u + 1u) % ELEMS);
  let h = scaled(down, p.x_size.x);
  let w = scaled(across, p.x_size.y);
  if (KIND == NEAREST) {
    let bad = p.outside == 0u && !(is_finite(h) && is_finite(w));
    let row = i32(round(inside(h, p.x_size.x)));
    let col = i32(round(inside(w, p.x_size.y)));
    return select(element(first, row, col), 0.0, bad);
  }
  if ((KIND == SIXTEEN || p.outside == 0u) && !(is_finite(h) && is_finite(w))) {
    return bitcast<f32>(nan_bits);
  }
  if (KIND == SIXTEEN) {
    return between_sixteen(first, h, w);
  }
  return between_four(first, h, w);
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
  y[word] = packed;
}

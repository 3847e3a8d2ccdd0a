// y = the p-norm of a row of a minus a row of b, over `cols` elements; see `rows` for which.
// One thread per word of y.
// uses: grid
override WG: u32 = 64u;
const PAIRS = false; // of one tensor: all pairs i < j, row by row
struct Params {
  n: u32, // results
  rows_a: u32,
  rows_b: u32,
  cols: u32,
  p: f32,
  kind: u32, // see `far`
  rank: u32, // of the batch dims
  pad: u32,
  dims: array<vec4<u32>, 2>, // of the batch, outermost first
  stride_a: array<vec4<u32>, 2>, // elements; 0 where a is repeated
  stride_b: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       a: array<u32>; // (…, rows_a, cols)
@group(0) @binding(1) var<storage, read>       b: array<u32>; // (…, rows_b, cols)
@group(0) @binding(2) var<storage, read_write> y: array<u32>; // (…, rows_a, rows_b), or (pairs)
@group(0) @binding(3) var<uniform>             p: Params;

const COUNT = 0u; // of what differs
const SUM = 1u;
const SQUARES = 2u;
const LARGEST = 3u; // any other kind: sums of powers

// The first elements of the two rows of result e.
fn rows(e: u32) -> vec2<u32> {
  if (PAIRS) {
    var i = 0u;
    var j = e;
    for (var left = p.rows_a - 1u; j >= left; left--) {
      j -= left;
      i++;
    }
    return vec2<u32>(i, i + 1u + j) * p.cols;
  }
  var rest = e / p.rows_b / p.rows_a;
  var at = vec2<u32>(e / p.rows_b % p.rows_a, e % p.rows_b) * p.cols;
  for (var d = p.rank; d > 0u; d--) {
    let dim = p.dims[(d - 1u) / 4u][(d - 1u) % 4u];
    let step = vec2<u32>(p.stride_a[(d - 1u) / 4u][(d - 1u) % 4u], p.stride_b[(d - 1u) / 4u][(d - 1u) % 4u]);
    at += rest % dim * step;
    rest /= dim;
  }
  return at;
}

fn far(so_far: f32, difference: f32) -> f32 {
  switch (p.kind) {
    case COUNT: { return so_far + select(0.0, 1.0, !(difference == 0.0)); }
    case SUM: { return so_far + difference; }
    case SQUARES: { return so_far + difference * difference; }
    case LARGEST: { // a NaN stays
      return select(max(so_far, difference), so_far + difference, is_nan(vec4<f32>(so_far + difference)).x);
    }
    default: { return so_far + power(vec4<f32>(difference), vec4<f32>(p.p)).x; }
  }
}

fn distance_of(at: vec2<u32>) -> f32 {
  var sum = 0.0;
  for (var start = 0u; start < p.cols; start += 4096u) { // some devices stop long loops
    for (var i = start; i < min(p.cols, start + 4096u); i++) {
      let j = at + i;
      sum = far(sum, abs(elem_get(a[j.x / ELEMS], j.x % ELEMS) - elem_get(b[j.y / ELEMS], j.y % ELEMS)));
    }
  }
  if (p.kind == SQUARES) { return sqrt(sum); }
  if (p.kind <= LARGEST) { return sum; }
  return power(vec4<f32>(sum), vec4<f32>(1.0 / p.p)).x;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.n; lane++) {
    packed = elem_put(packed, lane, distance_of(rows(word * ELEMS + lane)));
  }
  y[word] = packed;
}

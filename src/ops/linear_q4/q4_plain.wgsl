// y = x · Wᵀ + bias as in q4_gemv, for any k, group, stride and mix of dtypes. One thread per word
// of y; words that also belong to columns of another dispatch keep their other half.
// uses: grid either q4_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (m, k), X_HALF
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, stride) bytes
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (n, groups)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;
const X_HALF = 0u; // 1: x has elements of 2 bytes
const RUN = 4096u; // loops are nested: one software device ends a loop after 65,535 turns

fn code(row: u32, k: u32) -> f32 {
  let byte = row * p.stride + k / 2u;
  return f32(extractBits(w[byte / 4u], 8u * (byte % 4u) + 4u * (k & 1u), 4u)) - 8.0;
}

fn one(m: u32, row: u32) -> f32 {
  var sum = 0.0;
  for (var start = 0u; start < p.k; start += RUN) {
    for (var k = start; k < min(start + RUN, p.k); k++) {
      let i = m * p.k + k;
      let s = row * p.groups + k / p.group;
      sum += either_get(x[either_word(i, X_HALF)], i, X_HALF) * code(row, k) *
             either_get(scales[either_word(s, p.half)], s, p.half);
    }
  }
  if (p.bias != 0u) {
    let n = p.first + row;
    sum += either_get(bias[either_word(n, p.bias - 1u)], n, p.bias - 1u);
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.m * p.cols) {
    return;
  }
  var packed = 0u;
  if (ELEMS > 1u && p.n < p.cols) {
    packed = y[word];
  }
  var mine = false;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.m * p.cols; lane++) {
    let at = word * ELEMS + lane;
    let row = at % p.cols - p.first; // wraps below p.first, and is then past p.n
    if (row < p.n) {
      packed = elem_put(packed, lane, one(at / p.cols, row));
      mine = true;
    }
  }
  if (mine) {
    y[word] = packed;
  }
}

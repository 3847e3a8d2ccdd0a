// y as in q8w_tile, for any sizes and mix of dtypes. One thread per word of y; words that also belong
// to columns of another dispatch keep their other half.
// uses: grid either q8w_bias q8w_params
override WG: u32 = 64u;
const X_HALF = 0u; // 1: x has elements of 2 bytes
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, k) or (k, n) bytes
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (cols, groups), or (k)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;
const RUN = 4096u; // loops are nested: one software device ends a loop after 65,535 turns

fn one(m: u32, n: u32) -> f32 {
  var sum = 0.0;
  for (var start = 0u; start < p.k; start += RUN) {
    for (var k = start; k < min(start + RUN, p.k); k++) {
      let i = m * p.k + k;
      let j = select(n * p.k + k, k * p.n + n, p.by_k == 1u);
      let s = select((p.first + n) * p.groups + k / p.group, k, p.by_k == 1u);
      let code = extractBits(bitcast<i32>(w[j / 4u]), 8u * (j % 4u), 8u);
      sum += either_get(x[either_word(i, X_HALF)], i, X_HALF) * f32(code) *
             either_get(scales[either_word(s, p.half)], s, p.half);
    }
  }
  return sum + bias_at(n);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  let numel = p.m * p.cols;
  if (word * ELEMS >= numel) {
    return;
  }
  var packed = 0u;
  if (ELEMS > 1u && p.n < p.cols) {
    packed = y[word];
  }
  var mine = false;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < numel; lane++) {
    let at = word * ELEMS + lane;
    let n = at % p.cols - p.first; // wraps below p.first, and is then past p.n
    if (n < p.n) {
      packed = elem_put(packed, lane, one(at / p.cols, n));
      mine = true;
    }
  }
  if (mine) {
    y[word] = packed;
  }
}

// y as in matmul, for any sizes, steps and mix of dtypes. One thread per word of y; words that also
// belong to columns of another dispatch keep their other half.
// uses: grid either linear_params linear_end activations not_a_number
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;    // (batch, m, k)
@group(0) @binding(1) var<storage, read>       w: array<u32>;    // (batch, n, k) or (batch, k, n)
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // by bias_m, bias_n
@group(0) @binding(3) var<storage, read>       rest: array<u32>; // as y
@group(0) @binding(4) var<storage, read_write> y: array<u32>;    // (batch, m, cols)
@group(0) @binding(5) var<uniform>             p: Params;
const RUN = 4096u; // loops are nested: one software device ends a loop after 65,535 turns

fn one(b: u32, m: u32, n: u32) -> f32 {
  var sum = 0.0;
  for (var start = 0u; start < p.k; start += RUN) {
    for (var k = start; k < min(start + RUN, p.k); k++) {
      let i = (b * p.m + m) * p.k + k;
      let j = b * p.n * p.k + n * p.w_n + k * p.w_k;
      sum += elem_get(x[i / ELEMS], i % ELEMS) * either_get(w[either_word(j, p.w_half)], j, p.w_half);
    }
  }
  return linear_end(b, m, n, vec4<f32>(sum)).x;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  let numel = p.batch * p.m * p.cols;
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
    let row = at / p.cols;
    if (n < p.n) {
      packed = elem_put(packed, lane, one(row / p.m, row % p.m, n));
      mine = true;
    }
  }
  if (mine) {
    y[word] = packed;
  }
}

// y as in matmul, of integers: sums wrap at 32 bits as in PyTorch's narrowed ones, nothing is
// rounded. One thread per element of y.
// uses: grid linear_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<i32>;    // (batch, m, k)
@group(0) @binding(1) var<storage, read>       w: array<i32>;    // (batch, n, k) or (batch, k, n)
@group(0) @binding(2) var<storage, read>       bias: array<i32>; // by bias_m, bias_n
@group(0) @binding(3) var<storage, read_write> y: array<i32>;    // (batch, m, cols)
@group(0) @binding(4) var<uniform>             p: Params;
const RUN = 4096u; // loops are nested: one software device ends a loop after 65,535 turns

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let at = grid_group(group, groups) * WG + local;
  let n = at % p.cols - p.first; // wraps below p.first, and is then past p.n
  let row = at / p.cols;
  if (row >= p.batch * p.m || n >= p.n) {
    return;
  }
  var sum = 0;
  for (var start = 0u; start < p.k; start += RUN) {
    for (var k = start; k < min(start + RUN, p.k); k++) {
      sum += x[row * p.k + k] * w[row / p.m * p.n * p.k + n * p.w_n + k * p.w_k];
    }
  }
  sum *= i32(p.alpha);
  if (p.bias != 0u) {
    sum += i32(p.beta) * bias[row % p.m * p.bias_m + (p.first + n) * p.bias_n];
  }
  y[at] = sum;
}

// y as in dw, for any sizes.  One thread per word of y.
// uses: grid dw_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       d: array<u32>; // (m, n)
@group(0) @binding(1) var<storage, read>       x: array<u32>; // (m, k)
@group(0) @binding(2) var<storage, read_write> y: array<u32>; // (n, k)
@group(0) @binding(3) var<uniform>             p: Params;

fn one(n: u32, k: u32) -> f32 {
  var sum = 0.0;
  for (var start = 0u; start < p.m; start += 4096u) { // some devices stop long loops
    for (var m = start; m < min(p.m, start + 4096u); m++) {
      let i = m * p.n + n;
      let j = m * p.k + k;
      sum += elem_get(d[i / ELEMS], i % ELEMS) * elem_get(x[j / ELEMS], j % ELEMS);
    }
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n * p.k) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = min(word * ELEMS + lane, p.n * p.k - 1u);
    packed = elem_put(packed, lane, one(e / p.k, e % p.k));
  }
  y[word] = packed;
}

// y as in q4_back, for any sizes.  One thread per word of y.
// uses: grid either q4_back_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       d: array<u32>;      // (m, n)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, stride) bytes
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (groups, scales)
@group(0) @binding(3) var<storage, read_write> y: array<u32>;      // (m, k)
@group(0) @binding(4) var<uniform>             p: Params;

fn one(m: u32, k: u32) -> f32 {
  var sum = 0.0;
  for (var start = 0u; start < p.n; start += 4096u) { // some devices stop long loops
    for (var n = start; n < min(p.n, start + 4096u); n++) {
      let i = m * p.n + n;
      let byte = n * p.stride + k / 2u;
      let code = extractBits(w[byte / 4u], 8u * (byte % 4u) + 4u * (k & 1u), 4u);
      sum += elem_get(d[i / ELEMS], i % ELEMS) * (f32(code) - 8.0) * scale_of(k, n);
    }
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.m * p.k) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = min(word * ELEMS + lane, p.m * p.k - 1u);
    packed = elem_put(packed, lane, one(e / p.k, e % p.k));
  }
  y[word] = packed;
}

// Weights (n, k) as 4-bit codes round(w / scale[k / group, n]) + 8, from 0 to 15, two a byte, even k in
// the low half; 8 where the scale is 0, and 0 behind an odd row's end.  One thread per word of y.
// uses: grid divide either
override WG: u32 = 64u;
struct Params {
  bytes: u32, // of y
  k: u32,
  stride: u32, // bytes of a row of y
  group: u32,
  scales: u32, // of a group
  half: u32,   // the scales have 2 bytes
}
@group(0) @binding(0) var<storage, read>       w: array<u32>;      // (n, k)
@group(0) @binding(1) var<storage, read>       scales: array<u32>; // (groups, scales)
@group(0) @binding(2) var<storage, read_write> y: array<u32>;      // (n, stride) bytes
@group(0) @binding(3) var<uniform>             p: Params;

fn code(n: u32, k: u32) -> u32 {
  if (k >= p.k) {
    return 0u;
  }
  let i = n * p.k + k;
  let s = k / p.group * p.scales + n;
  let scale = either_get(scales[either_word(s, p.half)], s, p.half);
  if (scale == 0.0) {
    return 8u;
  }
  return u32(clamp(round(divide(elem_get(w[i / ELEMS], i % ELEMS), scale)), -8.0, 7.0) + 8.0);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * 4u >= p.bytes) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < 4u && word * 4u + lane < p.bytes; lane++) {
    let n = (word * 4u + lane) / p.stride;
    let k = (word * 4u + lane) % p.stride * 2u;
    packed = insertBits(packed, code(n, k) | (code(n, k + 1u) << 4u), lane * 8u, 8u);
  }
  y[word] = packed;
}

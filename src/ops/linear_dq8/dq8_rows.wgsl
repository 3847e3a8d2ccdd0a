// What 8 bits keep of x: y[m, k] = s · (q − z), q = clamp(round(x / s) + z, −128, 127), with a scale
// and a zero point a row. One thread per element; y is float32, so that nothing else is lost.
// uses: grid either exact_divide
override WG: u32 = 64u;
struct Params {
  m: u32,
  k: u32,
  first: u32, // row of the scales and zeros
  half: u32,  // scales of 2 bytes
  bytes: u32, // of a zero point: 1 or 4
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (m, k)
@group(0) @binding(1) var<storage, read>       scales: array<u32>; // (rows)
@group(0) @binding(2) var<storage, read>       zeros: array<u32>;  // (rows)
@group(0) @binding(3) var<storage, read_write> y: array<f32>;      // (m, k)
@group(0) @binding(4) var<uniform>             p: Params;

fn zero_of(m: u32) -> f32 {
  if (p.bytes == 4u) {
    return f32(bitcast<i32>(zeros[m]));
  }
  return f32(extractBits(bitcast<i32>(zeros[m / 4u]), 8u * (m % 4u), 8u));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i >= p.m * p.k) {
    return;
  }
  let m = p.first + i / p.k;
  let scale = either_get(scales[either_word(m, p.half)], m, p.half);
  let zero = zero_of(m);
  let v = round(elem_get(x[i / ELEMS], i % ELEMS) * exact_divide(1.0, scale));
  y[i] = scale * (clamp(v + zero, -128.0, 127.0) - zero);
}

// q4_rows in f32.
// Quad j of unit u at 8u + (j ^ u % 8), so that neighbours never meet in a bank.
var<workgroup> xs: array<vec4<f32>, STAGED * 8u>;

// A nibble in place, under the exponent of 2^23, is the number 2^23 + 16^i · code: subtracting
// leaves 16^i · (code − 8) exactly, and x carries the factor 16^-i.
const MASK = vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u);
const EXPONENT = vec4<u32>(0x4b000000u);
const OFFSET = vec4<f32>(8388616.0, 8388736.0, 8390656.0, 8421376.0);
const FACTOR = vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);

fn add_word(sum: vec4<f32>, q: u32, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
  let a = bitcast<vec4<f32>>((vec4<u32>(q) & MASK) | EXPONENT) - OFFSET;
  let b = bitcast<vec4<f32>>((vec4<u32>(q >> 16u) & MASK) | EXPONENT) - OFFSET;
  return fma(b, high, fma(a, low, sum));
}

fn stage(m: u32, unit: u32, units: u32, local: u32) {
  for (var turn = 0u; turn < (STAGED * 8u + WG - 1u) / WG; turn++) { // so many that it is unrolled
    let i = turn * WG + local;
    let u = i / 8u;
    var v = vec4<f32>(0.0);
    if (u < STAGED && unit + u < units) { // staged() must see each quad once
      v = staged(m, unit * 8u + i) * FACTOR;
    }
    if (STAGED * 8u % WG == 0u || i < STAGED * 8u) {
      xs[u * 8u + ((i ^ u) & 7u)] = v;
    }
  }
}

// Codes of one unit times x; slot: the unit's place in xs.
fn unit_dot(q: vec4<u32>, slot: u32) -> f32 {
  let at = slot * 8u;
  let key = slot & 7u;
  var t = add_word(vec4<f32>(), q.x, xs[at + key], xs[at + (1u ^ key)]);
  t = add_word(t, q.y, xs[at + (2u ^ key)], xs[at + (3u ^ key)]);
  t = add_word(t, q.z, xs[at + (4u ^ key)], xs[at + (5u ^ key)]);
  t = add_word(t, q.w, xs[at + (6u ^ key)], xs[at + (7u ^ key)]);
  return dot(t, vec4<f32>(1.0));
}

// q4_rows with x as integers of 24 bits, one scale a unit: codes and x meet in products of bytes,
// under half of the instructions of q4_f32, exact in 32 bits. Rounding x costs 6e-8 of the largest
// in its unit, as f32 does. Wants subgroups of at least 4, and T · U a multiple of 64.
const X_MOST = 8323072.0; // 127 · 2^16: the high byte stays below 128

// Of 8 numbers, by place in their word of codes: high and middle bytes of the even, of the odd; low
// bytes of the even, of the odd. All bytes are signed. Word w of unit u is at 4u + (w ^ u / 2 % 4),
// so that neighbours never meet in a bank.
var<workgroup> xs: array<vec4<u32>, STAGED * 4u>;
var<workgroup> x_lows: array<vec2<u32>, STAGED * 4u>;
var<workgroup> x_scales: array<vec4<i32>, STAGED>; // bits of the scale; 8 times the sums of the bytes

fn most_of(v: vec4<f32>) -> f32 { return max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))); }
fn bytes_of(a: i32, b: i32, c: i32, d: i32) -> u32 {
  return (u32(a) & 255u) | ((u32(b) & 255u) << 8u) | ((u32(c) & 255u) << 16u) | (u32(d) << 24u);
}
fn sum_of_bytes(even: u32, odd: u32) -> i32 {
  return dot4I8Packed(even, 0x08080808u) + dot4I8Packed(odd, 0x08080808u);
}

fn stage(m: u32, unit: u32, units: u32, local: u32) {
  for (var turn = 0u; turn < STAGED * 4u / WG; turn++) {
    let i = turn * WG + local;
    let u = i / 4u;
    var a = vec4<f32>(0.0);
    var b = vec4<f32>(0.0);
    if (unit + u < units) {
      a = staged(m, (unit * 4u + i) * 2u);
      b = staged(m, (unit * 4u + i) * 2u + 1u);
    }
    let two = max(most_of(a), most_of(b));
    let four = max(two, subgroupShuffleXor(two, 1u));
    let most = max(four, subgroupShuffleXor(four, 2u));
    let factor = select(0.0, X_MOST / most, most > 0.0);
    let l0 = vec4<i32>(round(a * factor));
    let l1 = vec4<i32>(round(b * factor));
    let m0 = (l0 + vec4<i32>(128)) >> vec4<u32>(8u);
    let m1 = (l1 + vec4<i32>(128)) >> vec4<u32>(8u);
    let h0 = (m0 + vec4<i32>(128)) >> vec4<u32>(8u);
    let h1 = (m1 + vec4<i32>(128)) >> vec4<u32>(8u);
    let x = vec4<u32>(bytes_of(h0.x, h0.z, h1.x, h1.z), bytes_of(m0.x, m0.z, m1.x, m1.z),
                      bytes_of(h0.y, h0.w, h1.y, h1.w), bytes_of(m0.y, m0.w, m1.y, m1.w));
    let low = vec2<u32>(bytes_of(l0.x, l0.z, l1.x, l1.z), bytes_of(l0.y, l0.w, l1.y, l1.w));
    let at = u * 4u + ((i ^ (u >> 1u)) & 3u);
    xs[at] = x;
    x_lows[at] = low;
    let sum2 = vec3<i32>(sum_of_bytes(x.x, x.z), sum_of_bytes(x.y, x.w), sum_of_bytes(low.x, low.y));
    let sum4 = sum2 + subgroupShuffleXor(sum2, 1u);
    let sum = sum4 + subgroupShuffleXor(sum4, 2u);
    if (i % 4u == 0u) {
      x_scales[u] = vec4<i32>(bitcast<i32>(most / X_MOST), sum);
    }
  }
}

struct Bytes { high: i32, middle: i32, low: i32 }
fn add_word(t: Bytes, q: u32, at: u32) -> Bytes {
  let x = xs[at];
  let low = x_lows[at];
  let even = q & 0x0f0f0f0fu;
  let odd = (q >> 4u) & 0x0f0f0f0fu;
  return Bytes(t.high + dot4I8Packed(even, x.x) + dot4I8Packed(odd, x.z),
               t.middle + dot4I8Packed(even, x.y) + dot4I8Packed(odd, x.w),
               t.low + dot4I8Packed(even, low.x) + dot4I8Packed(odd, low.y));
}

// Codes of one unit times x; slot: the unit's place in xs.
fn unit_dot(q: vec4<u32>, slot: u32) -> f32 {
  let at = slot * 4u;
  let key = (slot >> 1u) & 3u;
  var t = add_word(Bytes(0, 0, 0), q.x, at + key);
  t = add_word(t, q.y, at + (1u ^ key));
  t = add_word(t, q.z, at + (2u ^ key));
  t = add_word(t, q.w, at + (3u ^ key));
  let x = x_scales[slot];
  let rest = f32((t.middle - x.z) * 256 + (t.low - x.w));
  return fma(f32(t.high - x.y), 65536.0, rest) * bitcast<f32>(x.x);
}

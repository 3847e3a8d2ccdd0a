// x as integers of 24 bits with one scale for 32 of them, or for 16: codes and x meet in products of
// bytes, under half of the instructions of q4_f32, exact in 32 bits. Rounding x costs 6e-8 of the
// largest with this scale, as f32 does.
const X_MOST = 8323072.0; // 127 · 2^16: the high byte stays below 128

// 8 of them, by place in their word of codes; all bytes are signed.
struct Eight {
  x: vec4<u32>,     // high and middle bytes of the even, of the odd
  low: vec2<u32>,   // low bytes of the even, of the odd
  about: vec4<i32>, // of all with this scale: its bits; 8 times the sums of the bytes
}

fn most_of(v: vec4<f32>) -> f32 { return max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))); }
fn bytes_of(a: i32, b: i32, c: i32, d: i32) -> u32 {
  return (u32(a) & 255u) | ((u32(b) & 255u) << 8u) | ((u32(c) & 255u) << 16u) | (u32(d) << 24u);
}
fn sum_of_bytes(even: u32, odd: u32) -> i32 {
  return dot4I8Packed(even, 0x08080808u) + dot4I8Packed(odd, 0x08080808u);
}

// Four neighbouring threads share a scale, or two. Wants subgroups of at least 4, in uniform flow.
fn eight_of(a: vec4<f32>, b: vec4<f32>, threads: u32) -> Eight {
  let own = max(most_of(a), most_of(b));
  var most = max(own, subgroupShuffleXor(own, 1u));
  if (threads > 2u) {
    most = max(most, subgroupShuffleXor(most, 2u));
  }
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
  var sum = vec3<i32>(sum_of_bytes(x.x, x.z), sum_of_bytes(x.y, x.w), sum_of_bytes(low.x, low.y));
  sum += subgroupShuffleXor(sum, 1u);
  if (threads > 2u) {
    sum += subgroupShuffleXor(sum, 2u);
  }
  return Eight(x, low, vec4<i32>(bitcast<i32>(most / X_MOST), sum));
}

// One of a unit's words of codes times 8 numbers.
struct Bytes { high: i32, middle: i32, low: i32 }
fn add_word(t: Bytes, q: u32, x: vec4<u32>, low: vec2<u32>) -> Bytes {
  let even = q & 0x0f0f0f0fu;
  let odd = (q >> 4u) & 0x0f0f0f0fu;
  return Bytes(t.high + dot4I8Packed(even, x.x) + dot4I8Packed(odd, x.z),
               t.middle + dot4I8Packed(even, x.y) + dot4I8Packed(odd, x.w),
               t.low + dot4I8Packed(even, low.x) + dot4I8Packed(odd, low.y));
}
// What words with one scale add up to.
fn sum_of_words(t: Bytes, about: vec4<i32>) -> f32 {
  let rest = f32((t.middle - about.z) * 256 + (t.low - about.w));
  return fma(f32(t.high - about.y), 65536.0, rest) * bitcast<f32>(about.x);
}

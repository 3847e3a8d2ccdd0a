// Bytes of x, which is the shader's: four from byte `at` on, one.
fn x_bytes(at: u32) -> u32 {
  let shift = 8u * (at % 4u);
  let low = x[at / 4u];
  return select(low, (low >> shift) | (x[at / 4u + 1u] << (32u - shift)), shift > 0u);
}
fn x_byte(at: u32) -> u32 { return extractBits(x[at / 4u], 8u * (at % 4u), 8u); }

// Words of four columns, of four rows each, from words of the rows.
fn turned(r: vec4<u32>) -> vec4<u32> {
  let even = (r.xz & vec2<u32>(0xff00ffu)) | ((r.yw & vec2<u32>(0xff00ffu)) << vec2<u32>(8u));
  let odd = ((r.xz >> vec2<u32>(8u)) & vec2<u32>(0xff00ffu)) | (r.yw & vec2<u32>(0xff00ff00u));
  return vec4<u32>((even.x & 0xffffu) | (even.y << 16u), (odd.x & 0xffffu) | (odd.y << 16u),
                   (even.x >> 16u) | (even.y & 0xffff0000u), (odd.x >> 16u) | (odd.y & 0xffff0000u));
}

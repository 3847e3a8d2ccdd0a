// A tile of products of bytes: 4 · T rows of a by 4 · T columns of b, T · T threads, each of which has
// 4 by 4 sums. Rows and columns come in quads, DEEP words of four bytes at a time.
// The shader says const T and const WG = T · T.
const DEEP = 8u;
var<workgroup> q8_a: array<vec4<u32>, T * DEEP>; // (DEEP, T)
var<workgroup> q8_b: array<vec4<u32>, T * DEEP>;
struct Sums {
  r0: vec4<i32>, // of the first row, for four columns
  r1: vec4<i32>,
  r2: vec4<i32>,
  r3: vec4<i32>,
}
fn q8_dots(a: u32, b: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, b.x), dot4I8Packed(a, b.y), dot4I8Packed(a, b.z),
                   dot4I8Packed(a, b.w));
}
fn q8_add(sums: Sums, local: u32) -> Sums {
  var s = sums;
  for (var k = 0u; k < DEEP; k++) {
    let a = q8_a[k * T + local / T];
    let b = q8_b[k * T + local % T];
    s.r0 += q8_dots(a.x, b);
    s.r1 += q8_dots(a.y, b);
    s.r2 += q8_dots(a.z, b);
    s.r3 += q8_dots(a.w, b);
  }
  return s;
}

// Tiles of conv_gemm, of 128: a thread sums 8 channels by 8 pixels, which are four and four, 64 apart.
struct Sums {
  a0: vec4<f32>, a1: vec4<f32>, a2: vec4<f32>, a3: vec4<f32>,
  a4: vec4<f32>, a5: vec4<f32>, a6: vec4<f32>, a7: vec4<f32>,
  b0: vec4<f32>, b1: vec4<f32>, b2: vec4<f32>, b3: vec4<f32>,
  b4: vec4<f32>, b5: vec4<f32>, b6: vec4<f32>, b7: vec4<f32>,
}

fn sums_step(s: Sums, d: u32, local: u32) -> Sums {
  let c = tile_w[0][d][local / 16u];
  let e = tile_w[0][d][local / 16u + 16u];
  let q = tile_x[0][d][local % 16u];
  let r = tile_x[0][d][local % 16u + 16u];
  return Sums(fma(vec4<f32>(c.x), q, s.a0), fma(vec4<f32>(c.y), q, s.a1),
              fma(vec4<f32>(c.z), q, s.a2), fma(vec4<f32>(c.w), q, s.a3),
              fma(vec4<f32>(e.x), q, s.a4), fma(vec4<f32>(e.y), q, s.a5),
              fma(vec4<f32>(e.z), q, s.a6), fma(vec4<f32>(e.w), q, s.a7),
              fma(vec4<f32>(c.x), r, s.b0), fma(vec4<f32>(c.y), r, s.b1),
              fma(vec4<f32>(c.z), r, s.b2), fma(vec4<f32>(c.w), r, s.b3),
              fma(vec4<f32>(e.x), r, s.b4), fma(vec4<f32>(e.y), r, s.b5),
              fma(vec4<f32>(e.z), r, s.b6), fma(vec4<f32>(e.w), r, s.b7));
}

fn sums_add(s: Sums, local: u32) -> Sums {
  var sums = s;
  for (var d = 0u; d < DEPTH; d += 2u) {
    sums = sums_step(sums, d, local);
    sums = sums_step(sums, d + 1u, local);
  }
  return sums;
}

fn put_both(channel: u32, pixel: u32, a: vec4<f32>, b: vec4<f32>) {
  put(channel, pixel, a);
  put(channel, pixel + 64u, b);
}

fn sums_put(s: Sums, local: u32) {
  let c = local / 16u * 4u;
  let q = local % 16u * 4u;
  put_both(c, q, s.a0, s.b0);
  put_both(c + 1u, q, s.a1, s.b1);
  put_both(c + 2u, q, s.a2, s.b2);
  put_both(c + 3u, q, s.a3, s.b3);
  put_both(c + 64u, q, s.a4, s.b4);
  put_both(c + 65u, q, s.a5, s.b5);
  put_both(c + 66u, q, s.a6, s.b6);
  put_both(c + 67u, q, s.a7, s.b7);
}

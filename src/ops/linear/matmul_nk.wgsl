// w of (n, k) for matmul: threads bring quads along k, column by column. Column 4 · q + j is row
// j · QUADS + q of the tile, so that neighbours' columns lie in different banks.
var<workgroup> sw: array<array<array<vec4<f32>, DEEP + 1u>, QUADS>, 4>;

fn w_place(b: u32, n: u32, at: u32) -> u32 {
  return (b * p.n + min(n + at / DEEP, p.n - 1u)) * (p.k / 4u) + at % DEEP;
}
fn w_load(start: u32, k: u32, at: u32) -> vec4<f32> {
  if (k + 4u * (at % DEEP) >= p.k) {
    return vec4<f32>();
  }
  return quad_get(w[start + k / 4u]);
}
fn w_store(at: u32, v: vec4<f32>) { sw[at / DEEP % 4u][at / DEEP / 4u][at % DEEP] = v; }

fn w_deep(i: u32, q: u32) -> Deep {
  let c0 = sw[0][q][i];
  let c1 = sw[1][q][i];
  let c2 = sw[2][q][i];
  let c3 = sw[3][q][i];
  return Deep(vec4<f32>(c0.x, c1.x, c2.x, c3.x), vec4<f32>(c0.y, c1.y, c2.y, c3.y),
              vec4<f32>(c0.z, c1.z, c2.z, c3.z), vec4<f32>(c0.w, c1.w, c2.w, c3.w));
}

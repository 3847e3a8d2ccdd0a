// w of (k, n) for matmul: threads bring quads along n, depth by depth.
var<workgroup> sw: array<array<vec4<f32>, QUADS>, 4u * DEEP>;

fn w_place(b: u32, n: u32, at: u32) -> u32 {
  return (b * p.k + at / QUADS) * (p.n / 4u) + min(n / 4u + at % QUADS, p.n / 4u - 1u);
}
fn w_load(start: u32, k: u32, at: u32) -> vec4<f32> {
  if (k + at / QUADS >= p.k) {
    return vec4<f32>();
  }
  return quad_get(w[start + k * (p.n / 4u)]);
}
fn w_store(at: u32, v: vec4<f32>) { sw[at / QUADS][at % QUADS] = v; }

fn w_deep(i: u32, q: u32) -> Deep {
  return Deep(sw[4u * i][q], sw[4u * i + 1u][q], sw[4u * i + 2u][q], sw[4u * i + 3u][q]);
}

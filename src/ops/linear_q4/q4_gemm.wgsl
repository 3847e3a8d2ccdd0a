// y = x · Wᵀ + bias as in q4_gemv, for many rows m: a workgroup computes a tile of 64 by 64.
// Wants k % 4 == 0, group % 4 == 0, weight rows of whole words, rows of y that start on words.
// uses: grid either tile64 tile64_run q4_params
const WG = 256u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;     // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, stride / 4)
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (n, groups)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

fn x_quad(m: u32, k: u32) -> vec4<f32> {
  if (m >= p.m || k >= p.k) {
    return vec4<f32>(0.0);
  }
  return quad_get(x[(m * p.k + k) / 4u]);
}

// Four weights of a row: half a word, one scale.
fn w_quad(n: u32, k: u32, g: u32) -> vec4<f32> {
  if (n >= p.n || k >= p.k) {
    return vec4<f32>(0.0);
  }
  let q = w[n * (p.stride / 4u) + k / 8u] >> (4u * (k & 4u));
  let code = vec4<f32>((vec4<u32>(q) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u));
  let i = n * p.groups + g;
  return (code - 8.0) * elem_get(scales[i / ELEMS], i % ELEMS);
}

// The first half of the threads brings x, the second half the weights.
fn bring(m0: u32, n0: u32, k0: u32, local: u32) {
  let quad = local % 16u;
  let deep = local / 16u % 8u;
  let k = k0 + 4u * deep;
  if (local < WG / 2u) {
    let m = m0 + 4u * quad;
    tile_put_x(quad, deep, transpose4(Tile(x_quad(m, k), x_quad(m + 1u, k), x_quad(m + 2u, k),
                                           x_quad(m + 3u, k))));
  } else {
    let n = n0 + 4u * quad;
    let g = k / p.group;
    tile_put_w(quad, deep, transpose4(Tile(w_quad(n, k, g), w_quad(n + 1u, k, g),
                                           w_quad(n + 2u, k, g), w_quad(n + 3u, k, g))));
  }
}

fn put(m: u32, n: u32, sum: vec4<f32>) {
  for (var i = 0u; i < 4u && n + i < p.n && m < p.m; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let at = p.first + min(n + i + lane, p.n - 1u);
      var v = sum[i + lane];
      if (p.bias != 0u) {
        v += either_get(bias[either_word(at, p.bias - 1u)], at, p.bias - 1u);
      }
      word = elem_put(word, lane, v);
    }
    y[(m * p.cols + p.first + n + i) / ELEMS] = word;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let down = (p.m + 63u) / 64u; // tiles of rows: neighbours share weights
  let m0 = index % down * 64u;
  let n0 = index / down * 64u;
  tile_run(m0, n0, p.k, local);
}

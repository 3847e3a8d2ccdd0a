// y[m, n] as in q8w_vector, or Σ_k x[m, k] · w[k, n] · scale[k] + bias[n]: a workgroup computes a tile of 64 by 64.
// Wants k % 4 == 0, n % 4 == 0 if w is (k, n), else groups of whole words; rows of y that start on words.
// uses: grid either q8w_bias tile64 tile64_run q8w_quad q8w_params
const WG = 256u;
const K_LAST = true; // w is (n, k)
@group(0) @binding(0) var<storage, read>       x: array<Quad>;     // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, k) or (k, n) bytes
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (cols, groups), or (k)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

fn scale_of(at: u32) -> f32 { return either_get(scales[either_word(at, p.half)], at, p.half); }

fn x_quad(m: u32, k: u32) -> vec4<f32> {
  if (m >= p.m || k >= p.k) {
    return vec4<f32>(0.0);
  }
  return quad_get(x[(m * p.k + k) / 4u]);
}

fn w_quad(n: u32, k: u32) -> vec4<f32> {
  if (n >= p.n || k >= p.k) {
    return vec4<f32>(0.0);
  }
  if (K_LAST) {
    return q8w_quad(w[(n * p.k + k) / 4u]) * scale_of((p.first + n) * p.groups + k / p.group);
  }
  return q8w_quad(w[(k * p.n + n) / 4u]) * scale_of(k);
}

fn w_block(n: u32, k: u32) -> Tile {
  if (K_LAST) {
    return transpose4(Tile(w_quad(n, k), w_quad(n + 1u, k), w_quad(n + 2u, k), w_quad(n + 3u, k)));
  }
  return Tile(w_quad(n, k), w_quad(n, k + 1u), w_quad(n, k + 2u), w_quad(n, k + 3u));
}

// The first half of the threads brings x, the second half w.
fn bring(m0: u32, n0: u32, k0: u32, local: u32) {
  let quad = local % 16u;
  let deep = local / 16u % 8u;
  let k = k0 + 4u * deep;
  if (local < WG / 2u) {
    let m = m0 + 4u * quad;
    tile_put_x(quad, deep, transpose4(Tile(x_quad(m, k), x_quad(m + 1u, k), x_quad(m + 2u, k),
                                           x_quad(m + 3u, k))));
  } else {
    tile_put_w(quad, deep, w_block(n0 + 4u * quad, k));
  }
}

fn put(m: u32, n: u32, sum: vec4<f32>) {
  for (var i = 0u; i < 4u && n + i < p.n && m < p.m; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      word = elem_put(word, lane, sum[i + lane] + bias_at(n + i + lane));
    }
    y[(m * p.cols + p.first + n + i) / ELEMS] = word;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let down = (p.m + 63u) / 64u; // tiles of rows: neighbours share w
  let m0 = index % down * 64u;
  let n0 = index / down * 64u;
  tile_run(m0, n0, p.k, local);
}

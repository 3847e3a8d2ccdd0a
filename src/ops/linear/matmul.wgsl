// y[b, m, n] = alpha · Σ_k x[b, m, k] · w[b, …] + beta · bias[m, n]: a workgroup computes a tile of
// 64 by 64. w is (n, k) as a linear has it, or (k, n).
// Wants k % 4 == 0, n % 4 == 0 if w is (k, n), rows of y that start on words.
// uses: grid either tile64 linear_params
const WG = 256u;
const K_LAST = true; // w is (n, k)
@group(0) @binding(0) var<storage, read>       x: array<Quad>;   // (batch, m, k)
@group(0) @binding(1) var<storage, read>       w: array<Quad>;   // (batch, n, k) or (batch, k, n)
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // by bias_m, bias_n
@group(0) @binding(3) var<storage, read_write> y: array<u32>;    // (batch, m, cols)
@group(0) @binding(4) var<uniform>             p: Params;

fn x_quad(b: u32, m: u32, k: u32) -> vec4<f32> {
  if (m >= p.m || k >= p.k) {
    return vec4<f32>(0.0);
  }
  return quad_get(x[((b * p.m + m) * p.k + k) / 4u]);
}

fn w_quad(b: u32, n: u32, k: u32) -> vec4<f32> {
  if (n >= p.n || k >= p.k) {
    return vec4<f32>(0.0);
  }
  return quad_get(w[(b * p.n * p.k + n * p.w_n + k * p.w_k) / 4u]);
}

fn w_block(b: u32, n: u32, k: u32) -> Tile {
  if (K_LAST) {
    return transpose4(Tile(w_quad(b, n, k), w_quad(b, n + 1u, k), w_quad(b, n + 2u, k),
                           w_quad(b, n + 3u, k)));
  }
  return Tile(w_quad(b, n, k), w_quad(b, n, k + 1u), w_quad(b, n, k + 2u), w_quad(b, n, k + 3u));
}

// The first half of the threads brings x, the second half w.
fn bring(b: u32, m0: u32, n0: u32, k0: u32, local: u32) {
  let quad = local % 16u;
  let deep = local / 16u % 8u;
  let k = k0 + 4u * deep;
  if (local < WG / 2u) {
    let m = m0 + 4u * quad;
    tile_put_x(quad, deep, transpose4(Tile(x_quad(b, m, k), x_quad(b, m + 1u, k),
                                           x_quad(b, m + 2u, k), x_quad(b, m + 3u, k))));
  } else {
    tile_put_w(quad, deep, w_block(b, n0 + 4u * quad, k));
  }
}

fn put(b: u32, m: u32, n: u32, sum: vec4<f32>) {
  for (var i = 0u; i < 4u && n + i < p.n && m < p.m; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let at = m * p.bias_m + (p.first + min(n + i + lane, p.n - 1u)) * p.bias_n;
      var v = p.alpha * sum[i + lane];
      if (p.bias != 0u) {
        v += p.beta * either_get(bias[either_word(at, p.bias - 1u)], at, p.bias - 1u);
      }
      word = elem_put(word, lane, v);
    }
    y[((b * p.m + m) * p.cols + p.first + n + i) / ELEMS] = word;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let down = (p.m + 63u) / 64u; // tiles of rows: neighbours share w
  let across = (p.n + 63u) / 64u;
  let m0 = index % down * 64u;
  let n0 = index / down % across * 64u;
  let b = index / (down * across);
  var sum = Tile();
  for (var k = 0u; k < p.k && b < p.batch; k += 32u) {
    workgroupBarrier();
    bring(b, m0, n0, k, local);
    workgroupBarrier();
    sum = tile_add(sum, local);
  }
  let m = m0 + 4u * (local / 16u);
  let n = n0 + 4u * (local % 16u);
  if (b < p.batch) {
    put(b, m, n, sum.r0);
    put(b, m + 1u, n, sum.r1);
    put(b, m + 2u, n, sum.r2);
    put(b, m + 3u, n, sum.r3);
  }
}

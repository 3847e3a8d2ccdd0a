// The gradient of x through a product with a 4-bit weight: a workgroup computes a tile of 64 by 64.
// Wants n % 4 == 0, k % 4 == 0, groups of whole quads, even strides.
// uses: grid either tile64 tile64_run q4_back_params
const WG = 256u;
@group(0) @binding(0) var<storage, read>       d: array<Quad>;     // (m, n)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, stride) bytes
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (groups, scales)
@group(0) @binding(3) var<storage, read_write> y: array<Quad>;     // (m, k)
@group(0) @binding(4) var<uniform>             p: Params;

fn d_quad(m: u32, n: u32) -> vec4<f32> {
  if (m >= p.m || n >= p.n) {
    return vec4<f32>(0.0);
  }
  return quad_get(d[(m * p.n + n) / 4u]);
}
fn w_quad(n: u32, k: u32) -> vec4<f32> {
  if (n >= p.n || k >= p.k) {
    return vec4<f32>(0.0);
  }
  let byte = n * p.stride + k / 2u;
  let codes = (vec4<u32>(w[byte / 4u] >> (8u * (byte % 4u))) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
  return (vec4<f32>(codes) - 8.0) * scale_of(k, n);
}

// The first half of the threads brings d, the second half the weight.
fn bring(m0: u32, k0: u32, n0: u32, local: u32) {
  let quad = local % 16u;
  let deep = local / 16u % 8u;
  let n = n0 + 4u * deep;
  if (local < WG / 2u) {
    let m = m0 + 4u * quad;
    tile_put_x(quad, deep, transpose4(Tile(d_quad(m, n), d_quad(m + 1u, n), d_quad(m + 2u, n),
                                           d_quad(m + 3u, n))));
  } else {
    let k = k0 + 4u * quad;
    tile_put_w(quad, deep, Tile(w_quad(n, k), w_quad(n + 1u, k), w_quad(n + 2u, k), w_quad(n + 3u, k)));
  }
}

fn put(m: u32, k: u32, sum: vec4<f32>) {
  if (m < p.m && k < p.k) {
    y[(m * p.k + k) / 4u] = quad_put(sum);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let down = (p.m + 63u) / 64u; // tiles of rows: neighbours share the weight
  let m0 = index % down * 64u;
  let k0 = index / down * 64u;
  tile_run(m0, k0, p.n, local);
}

// y[n, k] = Σ_m d[m, n] · x[m, k]: a workgroup computes a tile of 64 by 64.
// Wants n % 4 == 0 and k % 4 == 0.
// uses: grid tile64 tile64_run dw_params
const WG = 256u;
@group(0) @binding(0) var<storage, read>       d: array<Quad>; // (m, n)
@group(0) @binding(1) var<storage, read>       x: array<Quad>; // (m, k)
@group(0) @binding(2) var<storage, read_write> y: array<Quad>; // (n, k)
@group(0) @binding(3) var<uniform>             p: Params;

fn d_quad(m: u32, n: u32) -> vec4<f32> {
  if (m >= p.m || n >= p.n) {
    return vec4<f32>(0.0);
  }
  return quad_get(d[(m * p.n + n) / 4u]);
}
fn x_quad(m: u32, k: u32) -> vec4<f32> {
  if (m >= p.m || k >= p.k) {
    return vec4<f32>(0.0);
  }
  return quad_get(x[(m * p.k + k) / 4u]);
}

// The first half of the threads brings d, the second half x.
fn bring(n0: u32, k0: u32, m0: u32, local: u32) {
  let quad = local % 16u;
  let deep = local / 16u % 8u;
  let m = m0 + 4u * deep;
  if (local < WG / 2u) {
    let n = n0 + 4u * quad;
    tile_put_x(quad, deep, Tile(d_quad(m, n), d_quad(m + 1u, n), d_quad(m + 2u, n), d_quad(m + 3u, n)));
  } else {
    let k = k0 + 4u * quad;
    tile_put_w(quad, deep, Tile(x_quad(m, k), x_quad(m + 1u, k), x_quad(m + 2u, k), x_quad(m + 3u, k)));
  }
}

fn put(n: u32, k: u32, sum: vec4<f32>) {
  if (n < p.n && k < p.k) {
    y[(n * p.k + k) / 4u] = quad_put(sum);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let across = (p.k + 63u) / 64u;
  let n0 = index / across * 64u;
  let k0 = index % across * 64u;
  tile_run(n0, k0, p.m, local);
}

// y[m, n] = Σ_k (x[m, k] − x_zero) · w[n, k], scaled, with a bias: see q8_real. A workgroup computes a
// tile of 4 · T by 4 · T. Rows of w are whole words, zeros behind the last k; so it does not matter
// what follows a row of x.
// uses: grid either apart q8_bytes q8_tile q8_real q8_requant q8_linear_params
const WG = 256u;
const T = 16u;
const ALIGNED = true; // rows of x are whole words too
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (m, k) bytes
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, words)
@group(0) @binding(2) var<storage, read>       sums: array<i32>;   // (n), of rows of w
@group(0) @binding(3) var<storage, read>       scales: array<u32>; // (n)
@group(0) @binding(4) var<storage, read>       bias: array<u32>;   // (n)
@group(0) @binding(5) var<storage, read_write> y: array<Out>;      // (m, n)
@group(0) @binding(6) var<uniform>             p: Params;

fn x_word(m: u32, i: u32) -> u32 {
  let at = min(m, p.m - 1u) * p.k + 4u * i;
  if (ALIGNED) {
    return x[at / 4u];
  }
  return x_bytes(at);
}

fn w_word(n: u32, i: u32) -> u32 { return w[min(n, p.n - 1u) * p.words + i]; }

// Threads bring quads of rows: four words each, of x and of w in turn.
fn bring(m0: u32, n0: u32, k0: u32, local: u32) {
  for (var i = local; i < 2u * T * DEEP; i += WG) {
    let deep = i % DEEP;
    let quad = i / DEEP % T;
    let k = k0 + deep;
    let inside = k < p.words;
    if (i < T * DEEP) {
      let m = m0 + 4u * quad;
      var words = vec4<u32>();
      if (inside) {
        words = vec4<u32>(x_word(m, k), x_word(m + 1u, k), x_word(m + 2u, k), x_word(m + 3u, k));
      }
      q8_a[deep * T + quad] = words;
    } else {
      let n = n0 + 4u * quad;
      var words = vec4<u32>();
      if (inside) {
        words = vec4<u32>(w_word(n, k), w_word(n + 1u, k), w_word(n + 2u, k), w_word(n + 3u, k));
      }
      q8_b[deep * T + quad] = words;
    }
  }
}

fn put(m: u32, n: u32, sum: vec4<i32>) {
  if (m < p.m && n < p.n) {
    let channel = min(vec4<u32>(n) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.n - 1u));
    let offset = p.x_zero * vec4<i32>(sums[channel.x], sums[channel.y], sums[channel.z],
                                      sums[channel.w]);
    q8_put(m * p.n + n, min(4u, p.n - n), q8_real(sum - offset, channel));
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let down = (p.m + 4u * T - 1u) / (4u * T); // tiles of rows: neighbours share w
  let m0 = index % down * 4u * T;
  let n0 = index / down * 4u * T;
  var sum = Sums();
  for (var k = 0u; k < p.words; k += DEEP) {
    workgroupBarrier();
    bring(m0, n0, k, local);
    workgroupBarrier();
    sum = q8_add(sum, local);
  }
  let m = m0 + 4u * (local / T);
  let n = n0 + 4u * (local % T);
  put(m, n, sum.r0);
  put(m + 1u, n, sum.r1);
  put(m + 2u, n, sum.r2);
  put(m + 3u, n, sum.r3);
}

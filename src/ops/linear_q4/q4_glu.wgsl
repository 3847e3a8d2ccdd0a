// y = silu(norm(x) · Gᵀ) · (norm(x) · Uᵀ) for few rows m; G and U lie in one buffer.
// The norm (p.norm) is x / sqrt(mean(x²) + eps) · norm; its factor is applied to the sums.
// A workgroup takes one m and p.blocks times SETS · R / 2 rows of G and of U. As q4_gemv; n is a
// multiple of R / 2.
// uses: grid q4_sets q4_norm
const WG = 256u;
const T = 64u;
const U = 1u;
const WORDS = 1u; // of y, that a thread writes
struct Params {
  m: u32,
  n: u32, // rows of G and of U
  k: u32,
  groups: u32, // scales of a row
  shift: u32,  // unit >> shift is its group
  blocks: u32,
  norm: u32,
  eps: f32,
  w_at: u32, // first unit of U; G begins at 0
  s_at: u32, // first scale of U
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;      // (m, k)
@group(0) @binding(1) var<storage, read>       norm: array<Quad>;   // (k)
@group(0) @binding(2) var<storage, read>       w: array<vec4<u32>>; // two of (n, k / 32)
@group(0) @binding(3) var<storage, read>       scales: array<u32>;  // two of (n, groups)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;       // (m, n)
@group(0) @binding(5) var<uniform>             p: Params;

const HALF = R / 2u; // rows of a set that are of G

fn put(m: u32, row: u32, first_at: u32, factor: f32) {
  for (var k = 0u; k < WORDS; k++) {
    let at = first_at + k * ELEMS;
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let i = (at + lane) / HALF * R + (at + lane) % HALF; // gate; HALF rows behind it is up
      let gate = sums_total(i) * factor;
      word = elem_put(word, lane, gate / (1.0 + exp(-gate)) * sums_total(i + HALF) * factor);
    }
    y[(m * p.n + row) / ELEMS + k] = word;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = min(index % p.m, p.m - 1u);
  let units = p.k / 32u;
  var factor = 1.0;
  for (var block = 0u; block < p.blocks; block++) {
    let base = (index / p.m * p.blocks + block) * SETS * HALF;
    let row = min(base + local / T * HALF, p.n - HALF);
    let rows = Rows(row * units, p.w_at + row * units, row * p.groups, p.s_at + row * p.groups, units,
                    p.groups, p.shift);
    sums_put(q4_rows(m, rows, units, block == 0u, local), local);
    if (block == 0u && p.norm != 0u) {
      squares_put(squares, local);
    }
    sums_barrier();
    if (block == 0u && p.norm != 0u) {
      factor = norm_factor(local);
    }
    let at = local * WORDS * ELEMS;
    if (at < SETS * HALF && base + at < p.n) {
      put(m, base + at, at, factor);
    }
    sums_barrier();
  }
}

// y_j = norm(x) · W_jᵀ + bias_j for up to three weights that lie in one buffer, for few rows m.
// The norm (p.norm) is x / sqrt(mean(x²) + eps) · norm; its factor is applied to the sums.
// A workgroup takes one m and p.blocks times SETS · R rows of all weights together, counted on
// from weight to weight. As q4_gemv; rows of each weight are a multiple of R.
// uses: grid q4_sets q4_norm
const WG = 256u;
const T = 64u;
const U = 1u;
const WORDS = 1u; // of y, that a thread writes
struct Params {
  m: u32,
  k: u32,
  groups: u32, // scales of a row
  shift: u32,  // unit >> shift is its group
  blocks: u32,
  norm: u32,
  bias: u32,
  eps: f32,
  ends: vec4<u32>, // rows of the weights so far
  w_at: vec4<u32>, // first unit of each weight
  s_at: vec4<u32>, // first scale
  b_at: vec4<u32>, // first element of its bias
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;      // (m, k)
@group(0) @binding(1) var<storage, read>       norm: array<Quad>;   // (k)
@group(0) @binding(2) var<storage, read>       w: array<vec4<u32>>; // three of (n_j, k / 32)
@group(0) @binding(3) var<storage, read>       scales: array<u32>;  // three of (n_j, groups)
@group(0) @binding(4) var<storage, read>       bias: array<u32>;    // three of (n_j)
@group(0) @binding(5) var<storage, read_write> y0: array<u32>;      // (m, n_0)
@group(0) @binding(6) var<storage, read_write> y1: array<u32>;      // (m, n_1)
@group(0) @binding(7) var<storage, read_write> y2: array<u32>;      // (m, n_2)
@group(0) @binding(8) var<uniform>             p: Params;

// Rows of the weights before weight j.
fn begin_of(j: u32) -> u32 { return select(select(p.ends.y, p.ends.x, j == 1u), 0u, j == 0u); }
fn weight_of(row: u32) -> u32 { return select(0u, 1u, row >= p.ends.x) + select(0u, 1u, row >= p.ends.y); }

fn put(m: u32, row: u32, at: u32, factor: f32) {
  let j = weight_of(row);
  let own = row - begin_of(j);
  for (var i = 0u; i < WORDS * ELEMS; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      var v = sums_total(at + i + lane) * factor;
      if (p.bias != 0u) {
        let b = p.b_at[j] + own + i + lane;
        v += elem_get(bias[b / ELEMS], b % ELEMS);
      }
      word = elem_put(word, lane, v);
    }
    let to = (m * (p.ends[j] - begin_of(j)) + own + i) / ELEMS;
    if (j == 0u) {
      y0[to] = word;
    } else if (j == 1u) {
      y1[to] = word;
    } else {
      y2[to] = word;
    }
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
    let base = (index / p.m * p.blocks + block) * SETS * R;
    let row = min(base + local / T * R, p.ends.z - R);
    let j = weight_of(row);
    let own = row - begin_of(j);
    let half = own + R / 2u;
    let rows = Rows(p.w_at[j] + own * units, p.w_at[j] + half * units, p.s_at[j] + own * p.groups,
                    p.s_at[j] + half * p.groups, units, p.groups, p.shift);
    sums_put(q4_rows(m, rows, units, block == 0u, local), local);
    if (block == 0u && p.norm != 0u) {
      squares_put(squares, local);
    }
    sums_barrier();
    if (block == 0u && p.norm != 0u) {
      factor = norm_factor(local);
    }
    let at = local * WORDS * ELEMS;
    if (at < SETS * R && base + at < p.ends.z) {
      put(m, base + at, at, factor);
    }
    sums_barrier();
  }
}

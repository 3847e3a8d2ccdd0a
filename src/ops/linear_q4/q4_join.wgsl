// y_j = norm(x) · W_jᵀ + bias_j for up to three weights that lie in one buffer, for few rows m.
// The norm (p.norm) is x / sqrt(mean(x²) + eps) · norm; its factor is applied to the sums.
// A workgroup takes one m and p.blocks times WG / L · 4 rows of all weights together, counted on
// from weight to weight. As q4_gemv; rows of each weight are a multiple of 4.
// uses: grid q4_rows
alias Reduced = f32;
const WG = 256u;
const L = 64u;
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
  b_at: vec4<u32>, // first quad of its bias
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;      // (m, k)
@group(0) @binding(1) var<storage, read>       norm: array<Quad>;   // (k)
@group(0) @binding(2) var<storage, read>       w: array<vec4<u32>>; // three of (n_j, k / 32)
@group(0) @binding(3) var<storage, read>       scales: array<u32>;  // three of (n_j, groups)
@group(0) @binding(4) var<storage, read>       bias: array<Quad>;   // three of (n_j)
@group(0) @binding(5) var<storage, read_write> y0: array<Quad>;     // (m, n_0)
@group(0) @binding(6) var<storage, read_write> y1: array<Quad>;     // (m, n_1)
@group(0) @binding(7) var<storage, read_write> y2: array<Quad>;     // (m, n_2)
@group(0) @binding(8) var<uniform>             p: Params;

var<private> squares: f32 = 0.0;

fn staged(m: u32, at: u32) -> vec4<f32> {
  let v = quad_get(x[m * (p.k / 4u) + at]);
  if (p.norm == 0u) {
    return v;
  }
  squares += dot(v, v);
  return v * quad_get(norm[at]);
}

fn put(m: u32, j: u32, row: u32, sum: vec4<f32>) {
  let begin = select(select(p.ends.y, p.ends.x, j == 1u), 0u, j == 0u);
  let at = (m * (p.ends[j] - begin) + row) / 4u;
  var v = sum;
  if (p.bias != 0u) {
    v += quad_get(bias[p.b_at[j] + row / 4u]);
  }
  if (j == 0u) {
    y0[at] = quad_put(v);
  } else if (j == 1u) {
    y1[at] = quad_put(v);
  } else {
    y2[at] = quad_put(v);
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
    let row = ((index / p.m * p.blocks + block) * (WG / L) + local / L) * 4u;
    let at = min(row, p.ends.z - 4u);
    let j = select(0u, 1u, at >= p.ends.x) + select(0u, 1u, at >= p.ends.y);
    let own = at - select(select(p.ends.y, p.ends.x, j == 1u), 0u, j == 0u); // row of weight j
    let rows = vec4<u32>(own) + vec4<u32>(0u, 1u, 2u, 3u);
    let sum = q4_rows(m, p.w_at[j] + rows * units, p.s_at[j] + rows * p.groups, units, p.shift,
                      block == 0u, local);
    if (block == 0u && p.norm != 0u) {
      factor = inverseSqrt(group_add(squares, local) / f32(p.k) + p.eps);
    }
    if (local % L == 0u && row < p.ends.z) {
      put(m, j, own, sum * factor);
    }
  }
}

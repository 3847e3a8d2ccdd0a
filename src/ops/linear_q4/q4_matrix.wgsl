// x · Wᵀ in subgroup matrices, f16 products with f32 sums, for many rows m: a workgroup computes a
// tile of ROWS by COLS over one of p.slices of k. What remains to be done to the sums (factors, bias)
// does q4_scaled. A subgroup has so many matrices of MM by MN as the library says (mma_4x2: 4 by 2);
// there are GM by GN subgroups. Offsets of matrices are constants, in an array for each subgroup's
// rows: a checked offset would cost half of the speed. Rows in workgroup memory are padded by 16
// bytes, all variables there are multiples of 16 bytes.
// Wants k % 32 == 0; group 32 · 2^i or all of k.
// uses: grid q4_params
const WG = 256u;
const LANES = 32u;
const MM = 16u;
const MN = 16u;
const MK = 16u;
const GM = 2u;
const GN = 4u;
const DEEP = 4u * MK;
const STRIDE = DEEP / 4u + 2u;   // vec4s of a row in workgroup memory
const SUB_ROWS = SA * MM;        // of a subgroup
const SUB_COLS = SB * MN;
const ROWS = GM * SUB_ROWS;
const COLS = GN * SUB_COLS;
const X_UNITS = DEEP / 8u;       // of a row: units of 8 halves
const W_UNITS = DEEP / 32u;      // units of 32 codes
const X_LOADS = ROWS * X_UNITS / WG; // 2 or 4
const_assert X_LOADS <= 4u;
const W_LOADS = COLS * W_UNITS / WG; // 1 or 2
alias Left = subgroup_matrix_left<f16, MK, MM>;
alias Right = subgroup_matrix_right<f16, MN, MK>;
alias Result = subgroup_matrix_result<f32, MN, MM>;
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (m, k padded to 64) halves of q4_half
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       norms: array<f32>;   // (cols) powers of two that scales are multiplied by
@group(0) @binding(4) var<storage, read_write> y: array<f32>;       // (slices, m, n), both padded to tiles
@group(0) @binding(5) var<uniform>             p: Params;
var<workgroup> sx: array<array<vec4<f16>, SUB_ROWS * STRIDE>, GM>;
var<workgroup> sw: array<array<vec4<f16>, SUB_COLS * STRIDE>, GN>;

// Where a thread's loads begin.
struct Places { x: vec4<u32>, w: vec2<u32>, s: vec2<u32>, norm: vec2<f32> }
struct Loaded { x0: vec4<u32>, x1: vec4<u32>, x2: vec4<u32>, x3: vec4<u32>, w0: vec4<u32>, w1: vec4<u32>, s: vec2<f32> }

fn units() -> u32 { return (p.k + 63u) / 64u * 8u; } // of a row of x
fn x_at(m: u32) -> u32 { return min(m, p.m - 1u) * units(); }

fn places(m0: u32, n0: u32, local: u32) -> Places {
  let m = m0 + local / X_UNITS;
  let n = min(vec2<u32>(n0 + local / W_UNITS) + vec2<u32>(0u, WG / W_UNITS), vec2<u32>(p.n - 1u));
  let step = WG / X_UNITS;
  return Places(vec4<u32>(x_at(m), x_at(m + step), x_at(m + 2u * step), x_at(m + 3u * step)) + local % X_UNITS,
                n * (p.k / 32u), n * p.groups, vec2<f32>(norms[p.first + n.x], norms[p.first + n.y]));
}

fn scale(at: u32) -> f32 { return elem_get(scales[at / ELEMS], at % ELEMS); }

// Past the end of k, x is 0, and the weight what it was there.
fn load(at: Places, k: u32, local: u32) -> Loaded {
  let unit = min(k / 32u + local % W_UNITS, p.k / 32u - 1u);
  var l: Loaded;
  l.x0 = x[at.x.x + k / 8u];
  l.x1 = x[at.x.y + k / 8u];
  if (X_LOADS > 2u) {
    l.x2 = x[at.x.z + k / 8u];
    l.x3 = x[at.x.w + k / 8u];
  }
  l.w0 = w[at.w.x + unit];
  l.s.x = scale(at.s.x + (unit >> p.shift)) * at.norm.x;
  if (W_LOADS > 1u) {
    l.w1 = w[at.w.y + unit];
    l.s.y = scale(at.s.y + (unit >> p.shift)) * at.norm.y;
  }
  return l;
}

fn x_store(row: u32, local: u32, v: vec4<u32>) {
  let at = row % SUB_ROWS * STRIDE + local % X_UNITS * 2u;
  sx[row / SUB_ROWS][at] = bitcast<vec4<f16>>(v.xy);
  sx[row / SUB_ROWS][at + 1u] = bitcast<vec4<f16>>(v.zw);
}

// Two codes under the exponent of 1024 are 1024 + code and 1024 + 16 · code.
fn pair(q: u32) -> vec2<f16> { return bitcast<vec2<f16>>((q & 0x000f000fu) | 0x64006400u) - 1032.0h; }
fn high(q: u32) -> vec2<f16> { return bitcast<vec2<f16>>((q & 0x00f000f0u) | 0x64006400u) - 1152.0h; }

fn word_store(z: u32, at: u32, q: u32, s: f16) {
  sw[z][at] = vec4<f16>(pair(q) * s, high(q) * (s * 0.0625h));
  sw[z][at + 1u] = vec4<f16>(pair(q >> 8u) * s, high(q >> 8u) * (s * 0.0625h));
}

fn w_store(row: u32, local: u32, q: vec4<u32>, s: f16) {
  let at = row % SUB_COLS * STRIDE + local % W_UNITS * 8u;
  word_store(row / SUB_COLS, at, q.x, s);
  word_store(row / SUB_COLS, at + 2u, q.y, s);
  word_store(row / SUB_COLS, at + 4u, q.z, s);
  word_store(row / SUB_COLS, at + 6u, q.w, s);
}

fn store(l: Loaded, local: u32) {
  let row = local / X_UNITS;
  x_store(row, local, l.x0);
  x_store(row + WG / X_UNITS, local, l.x1);
  if (X_LOADS > 2u) {
    x_store(row + 2u * WG / X_UNITS, local, l.x2);
    x_store(row + 3u * WG / X_UNITS, local, l.x3);
  }
  w_store(local / W_UNITS, local, l.w0, f16(l.s.x));
  if (W_LOADS > 1u) {
    w_store(local / W_UNITS + WG / W_UNITS, local, l.w1, f16(l.s.y));
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let down = (p.m + ROWS - 1u) / ROWS; // tiles of rows: neighbours share weights
  let across = (p.n + COLS - 1u) / COLS;
  let index = grid_group(group, groups);
  let slice = index / (down * across);
  if (slice >= max(p.slices, 1u)) { // a folded grid has more workgroups
    return;
  }
  let n0 = index / down % across * COLS;
  let m0 = index % down * ROWS;
  let gm = local / LANES / GN;
  let gn = local / LANES % GN;
  let width = across * COLS;
  let to = (slice * down * ROWS + m0 + gm * SUB_ROWS) * width + n0 + gn * SUB_COLS;
  let from_k = slice * p.span;
  tile_products(places(m0, n0, local), from_k, min(from_k + p.span, units() * 8u), local, gm, gn, to, width);
}

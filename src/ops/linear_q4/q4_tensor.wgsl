// x · Wᵀ in subgroup matrices, f16 products with f32 sums, for many rows m: a workgroup computes a
// tile of ROWS by COLS. A subgroup has so many matrices of MM by MN as the library says (mma_4x2: 4 by
// 2); there are GM by GN subgroups. Offsets of matrices are constants, in an array for each subgroup's
// rows: a checked offset would cost half of the speed. Rows in workgroup memory are padded by 16 bytes,
// all variables there are multiples of 16 bytes.
// The kernel binds x, w, scales and norms as q4_matrix does, tells which row of a weight a column of the
// tile at n0 is (`fn weight_row(n0, col) -> Row`, in bounds), and takes two neighbouring matrices of
// results at a time: `fn pair_out(o: Out, i: u32, a: Result, b: Result)`, of the subgroup's row i, uniform control flow.
// Wants k % 32 == 0; group 32 · 2^i or all of k.
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
const_assert W_LOADS <= 2u;
alias Left = subgroup_matrix_left<f16, MK, MM>;
alias Right = subgroup_matrix_right<f16, MN, MK>;
alias Result = subgroup_matrix_result<f32, MN, MM>;
var<workgroup> sx: array<array<vec4<f16>, SUB_ROWS * STRIDE>, GM>;
var<workgroup> sw: array<array<vec4<f16>, SUB_COLS * STRIDE>, GN>;

// Where a thread's loads begin. Rows of x behind the last one hold anything: so do their results, which
// nobody keeps.
struct Places { x: u32, w: vec2<u32>, s: vec2<u32>, norm: vec2<f32> }
// A row of a weight: its first unit of codes, its first scale, its norm.
struct Row { w: u32, s: u32, norm: u32 }
struct Seat { local: u32, sg: u32, gm: u32, gn: u32 } // a thread, its subgroup and the subgroup's place
struct Loaded { x0: vec4<u32>, x1: vec4<u32>, x2: vec4<u32>, x3: vec4<u32>, w0: vec4<u32>, w1: vec4<u32>, s: vec2<f32> }

fn units() -> u32 { return (p.k + 63u) / 64u * 8u; } // of a row of x

fn places(m0: u32, n0: u32, local: u32) -> Places {
  let m = m0 + local / X_UNITS;
  let a = weight_row(n0, local / W_UNITS);
  let b = weight_row(n0, local / W_UNITS + WG / W_UNITS);
  return Places(m * units() + local % X_UNITS,
                vec2<u32>(a.w, b.w), vec2<u32>(a.s, b.s), vec2<f32>(norms[a.norm], norms[b.norm]));
}

fn scale(at: u32) -> f32 { return elem_get(scales[at / ELEMS], at % ELEMS); }

// Of the x of a row's last 64, what is past the end of k is 0, and the weight what it was there.
fn load(at: Places, k: u32, local: u32) -> Loaded {
  let unit = min(k / 32u + local % W_UNITS, p.k / 32u - 1u);
  var l: Loaded;
  let step = units() * (WG / X_UNITS);
  let from_x = at.x + k / 8u;
  l.x0 = x[from_x];
  l.x1 = x[from_x + step];
  if (X_LOADS > 2u) {
    l.x2 = x[from_x + 2u * step];
    l.x3 = x[from_x + 3u * step];
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

fn seat_of(local: u32) -> Seat {
  let sg = local / LANES;
  return Seat(local, sg, sg / GN, sg % GN);
}

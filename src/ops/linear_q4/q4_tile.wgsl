// A tile of x · Wᵀ for many rows of x, W in 4 bits: R · TY rows of x by COLS = 4 · C · TX rows of the
// weight, 32 deep, by TX · TY threads. A thread has R rows and C times four columns of the result.
// What a step needs is loaded before the products of the step in front of it. Everything but a
// thread's own place is a constant, and written out: then checked indices cost next to nothing.
// The kernel says const WG, TX, TY, R, C, binds x, w (words) and scales, and tells where the row of
// the weight begins that is a column of the tile at n0: `fn row_at(n0, col) -> vec2<u32>`, word and
// scale, in bounds.
const COLS = 4u * C * TX;
const QUADS = COLS / 4u;        // of columns
const HALVES = 8u * QUADS / WG; // half words that a thread brings of four rows of w: 1 or 2
const LOADS = 8u * R * TY / WG; // quads of x that it brings: 1, 2 or 4
var<workgroup> sx: array<array<array<vec4<f32>, 8>, R>, TY>; // (rows, 32 deep)
var<workgroup> sw: array<array<vec4<f32>, QUADS>, 32>;       // (32 deep, columns)

// Where a thread's loads begin: quads of x, words of w, scales.
struct Places { x: vec4<u32>, w: vec4<u32>, s: vec4<u32> }
struct Loaded { x0: vec4<f32>, x1: vec4<f32>, x2: vec4<f32>, x3: vec4<f32>, w: vec4<u32>, s: vec4<f32> }
struct Cols { a: vec4<f32>, b: vec4<f32> } // columns 4 · tx …, and TX quads behind them
struct Sums { r0: Cols, r1: Cols, r2: Cols, r3: Cols, r4: Cols, r5: Cols, r6: Cols, r7: Cols }
struct Deep { k0: vec4<f32>, k1: vec4<f32>, k2: vec4<f32>, k3: vec4<f32> } // four depths

fn half_of(local: u32) -> u32 { return local / QUADS * HALVES; } // of the step's 8, the first
fn quad_at(m: u32, local: u32) -> u32 { return min(m, p.m - 1u) * (p.k / 4u) + local % 8u; }

fn places(m0: u32, n0: u32, local: u32) -> Places {
  let m = m0 + local / 8u;
  let col = 4u * (local % QUADS);
  let a = row_at(n0, col);
  let b = row_at(n0, col + 1u);
  let c = row_at(n0, col + 2u);
  let d = row_at(n0, col + 3u);
  return Places(vec4<u32>(quad_at(m, local), quad_at(m + WG / 8u, local),
                          quad_at(m + WG / 4u, local), quad_at(m + 3u * WG / 8u, local)),
                vec4<u32>(a.x, b.x, c.x, d.x), vec4<u32>(a.y, b.y, c.y, d.y));
}

fn x_load(at: u32, k: u32, local: u32) -> vec4<f32> {
  return select(vec4<f32>(), quad_get(x[at + k / 4u]), k + 4u * (local % 8u) < p.k);
}
fn scale(at: u32) -> f32 { return elem_get(scales[at / ELEMS], at % ELEMS); }

// Past the end of k, x is 0, and the weight what it was there.
fn load(at: Places, k: u32, local: u32) -> Loaded {
  let own = min(k + 4u * half_of(local), p.k - 1u);
  let i = at.w + own / 8u;
  let s = at.s + own / p.group;
  var l: Loaded;
  l.x0 = x_load(at.x.x, k, local);
  if (LOADS > 1u) {
    l.x1 = x_load(at.x.y, k, local);
  }
  if (LOADS > 2u) {
    l.x2 = x_load(at.x.z, k, local);
    l.x3 = x_load(at.x.w, k, local);
  }
  l.w = vec4<u32>(w[i.x], w[i.y], w[i.z], w[i.w]);
  l.s = vec4<f32>(scale(s.x), scale(s.y), scale(s.z), scale(s.w));
  return l;
}

fn x_store(at: u32, local: u32, v: vec4<f32>) { sx[at / R][at % R][local % 8u] = v; }

// A code under the exponent of 2^23 is the number 2^23 + code.
fn w_store(deep: u32, local: u32, codes: vec4<u32>, s: vec4<f32>) {
  let v = bitcast<vec4<f32>>((codes & vec4<u32>(15u)) | vec4<u32>(0x4b000000u)) - 8388616.0;
  sw[deep][local % QUADS] = v * s;
}

fn store(l: Loaded, local: u32) {
  x_store(local / 8u, local, l.x0);
  if (LOADS > 1u) {
    x_store(local / 8u + WG / 8u, local, l.x1);
  }
  if (LOADS > 2u) {
    x_store(local / 8u + WG / 4u, local, l.x2);
    x_store(local / 8u + 3u * WG / 8u, local, l.x3);
  }
  let half = half_of(local);
  let q = l.w >> vec4<u32>(16u * (half % 2u));
  w_store(4u * half, local, q, l.s);
  w_store(4u * half + 1u, local, q >> vec4<u32>(4u), l.s);
  w_store(4u * half + 2u, local, q >> vec4<u32>(8u), l.s);
  w_store(4u * half + 3u, local, q >> vec4<u32>(12u), l.s);
  if (HALVES > 1u) {
    w_store(4u * half + 4u, local, q >> vec4<u32>(16u), l.s);
    w_store(4u * half + 5u, local, q >> vec4<u32>(20u), l.s);
    w_store(4u * half + 6u, local, q >> vec4<u32>(24u), l.s);
    w_store(4u * half + 7u, local, q >> vec4<u32>(28u), l.s);
  }
}

fn deep_add(sum: vec4<f32>, v: vec4<f32>, d: Deep) -> vec4<f32> {
  return fma(vec4<f32>(v.w), d.k3, fma(vec4<f32>(v.z), d.k2, fma(vec4<f32>(v.y), d.k1, fma(vec4<f32>(v.x), d.k0, sum))));
}
fn row_add(sum: Cols, v: vec4<f32>, a: Deep, b: Deep) -> Cols {
  if (C > 1u) {
    return Cols(deep_add(sum.a, v, a), deep_add(sum.b, v, b));
  }
  return Cols(deep_add(sum.a, v, a), sum.b);
}

// Depths 4 · i to 4 · i + 3.
fn quad_add(sums: Sums, i: u32, tx: u32, ty: u32) -> Sums {
  let d = 4u * i;
  var t = sums;
  let a = Deep(sw[d][tx], sw[d + 1u][tx], sw[d + 2u][tx], sw[d + 3u][tx]);
  var b = a;
  if (C > 1u) {
    b = Deep(sw[d][tx + TX], sw[d + 1u][tx + TX], sw[d + 2u][tx + TX], sw[d + 3u][tx + TX]);
  }
  t.r0 = row_add(t.r0, sx[ty][0][i], a, b);
  t.r1 = row_add(t.r1, sx[ty][1][i], a, b);
  t.r2 = row_add(t.r2, sx[ty][2][i], a, b);
  t.r3 = row_add(t.r3, sx[ty][3][i], a, b);
  if (R > 4u) {
    t.r4 = row_add(t.r4, sx[ty][4u % R][i], a, b);
    t.r5 = row_add(t.r5, sx[ty][5u % R][i], a, b);
    t.r6 = row_add(t.r6, sx[ty][6u % R][i], a, b);
    t.r7 = row_add(t.r7, sx[ty][7u % R][i], a, b);
  }
  return t;
}

// Depths [from_k, to_k) of the tile at m0, n0; uniform control flow only.
fn tile_sums(m0: u32, n0: u32, from_k: u32, to_k: u32, local: u32) -> Sums {
  let at = places(m0, n0, local);
  let tx = local % TX;
  let ty = local / TX;
  var sums = Sums();
  var next = load(at, from_k, local);
  for (var k = from_k; k < to_k; k += 32u) {
    workgroupBarrier();
    store(next, local);
    workgroupBarrier();
    if (k + 32u < to_k) {
      next = load(at, k + 32u, local);
    }
    sums = quad_add(sums, 0u, tx, ty);
    sums = quad_add(sums, 1u, tx, ty);
    sums = quad_add(sums, 2u, tx, ty);
    sums = quad_add(sums, 3u, tx, ty);
    sums = quad_add(sums, 4u, tx, ty);
    sums = quad_add(sums, 5u, tx, ty);
    sums = quad_add(sums, 6u, tx, ty);
    sums = quad_add(sums, 7u, tx, ty);
  }
  return sums;
}

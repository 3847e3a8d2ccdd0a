// y[b, m, n] = what linear_end makes of Σ_k x[b, m, k] · w[b, …]: a workgroup computes a tile of R · TY
// rows by 4 · C · TX columns, over all of k or over one of p.slices. A thread has every TY-th row, and
// C times four columns; TEAMS of threads share the depth where tiles are small. What a step needs is loaded before the products of the step in front of it.
// Everything but a thread's own place is a constant, and written out: then checked indices cost next to nothing.
// A library says how w lies: matmul_nk or matmul_kn.
// Wants k % 4 == 0, n % 4 == 0 if w is (k, n), rows of y that start on words.
// uses: grid either linear_params linear_end activations not_a_number
const WG = 256u;
const TX = 16u;
const R = 8u; // 4 or 8
const C = 2u; // 1 or 2
const TEAMS = 1u; // more with R 4 and C 1
const TEAM = WG / TEAMS; // threads
const TY = TEAM / TX;
const DEEP = 4u * TEAMS; // quads of k that a step takes
const COLS = 4u * C * TX;
const QUADS = C * TX;             // of columns
const X_LOADS = R * TY * DEEP / WG; // quads that a thread brings: 1 or 2
const W_LOADS = COLS * DEEP / WG;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;    // (batch, m, k)
@group(0) @binding(1) var<storage, read>       w: array<Quad>;    // (batch, n, k) or (batch, k, n)
@group(0) @binding(2) var<storage, read>       bias: array<u32>;  // by bias_m, bias_n
@group(0) @binding(3) var<storage, read>       rest: array<u32>;  // as y
@group(0) @binding(4) var<storage, read_write> y: array<u32>;     // (batch, m, cols) or f32 (slices, m, n)
@group(0) @binding(5) var<uniform>             p: Params;
// A quad more a row, so that neighbours' rows lie in different banks.
var<workgroup> sx: array<array<array<vec4<f32>, DEEP + 1u>, TY>, R>; // (rows of a thread, threads, deep), later sums

struct Cols { a: vec4<f32>, b: vec4<f32> } // columns 4 · tx …, and TX quads behind them
struct Sums { r0: Cols, r1: Cols, r2: Cols, r3: Cols, r4: Cols, r5: Cols, r6: Cols, r7: Cols }
struct Deep { k0: vec4<f32>, k1: vec4<f32>, k2: vec4<f32>, k3: vec4<f32> } // four depths of four columns
struct Loaded { x0: vec4<f32>, x1: vec4<f32>, w0: vec4<f32>, w1: vec4<f32> }

fn x_place(b: u32, m: u32, local: u32) -> u32 {
  return (b * p.m + min(m + local / DEEP, p.m - 1u)) * (p.k / 4u) + local % DEEP;
}
fn x_load(at: u32, k: u32, local: u32) -> vec4<f32> {
  if (k + 4u * (local % DEEP) >= p.k) {
    return vec4<f32>();
  }
  return quad_get(x[at + k / 4u]);
}
fn x_store(row: u32, deep: u32, v: vec4<f32>) { sx[row / TY][row % TY][deep] = v; }

fn load(x_at: vec2<u32>, w_at: vec2<u32>, k: u32, local: u32) -> Loaded {
  var l: Loaded;
  l.x0 = x_load(x_at.x, k, local);
  if (X_LOADS > 1u) {
    l.x1 = x_load(x_at.y, k, local);
  }
  l.w0 = w_load(w_at.x, k, local);
  if (W_LOADS > 1u) {
    l.w1 = w_load(w_at.y, k, local + WG);
  }
  return l;
}

fn store(l: Loaded, local: u32) {
  x_store(local / DEEP, local % DEEP, l.x0);
  if (X_LOADS > 1u) {
    x_store(local / DEEP + WG / DEEP, local % DEEP, l.x1);
  }
  w_store(local, l.w0);
  if (W_LOADS > 1u) {
    w_store(local + WG, l.w1);
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

// Depths 4 · i to 4 · i + 3 of a step.
fn quad_add(sums: Sums, i: u32, tx: u32, ty: u32) -> Sums {
  var t = sums;
  let a = w_deep(i, tx);
  var b = a;
  if (C > 1u) {
    b = w_deep(i, tx + TX);
  }
  t.r0 = row_add(t.r0, sx[0][ty][i], a, b);
  t.r1 = row_add(t.r1, sx[1][ty][i], a, b);
  t.r2 = row_add(t.r2, sx[2][ty][i], a, b);
  t.r3 = row_add(t.r3, sx[3][ty][i], a, b);
  if (R > 4u) {
    t.r4 = row_add(t.r4, sx[4u % R][ty][i], a, b);
    t.r5 = row_add(t.r5, sx[5u % R][ty][i], a, b);
    t.r6 = row_add(t.r6, sx[6u % R][ty][i], a, b);
    t.r7 = row_add(t.r7, sx[7u % R][ty][i], a, b);
  }
  return t;
}

fn team_of(local: u32) -> u32 {
  if (TEAMS == 1u) {
    return 0u;
  }
  return local / TEAM;
}

fn sum_keep(at: u32, v: vec4<f32>) { sx[at / (DEEP + 1u) / TY][at / (DEEP + 1u) % TY][at % (DEEP + 1u)] = v; }
fn sum_kept(at: u32) -> vec4<f32> { return sx[at / (DEEP + 1u) / TY][at / (DEEP + 1u) % TY][at % (DEEP + 1u)]; }

// The first team gets what the others found; uniform control flow only.
fn teams_add(sums: Sums, local: u32) -> Sums {
  var t = sums;
  let team = local / TEAM;
  for (var half = TEAMS / 2u; half > 0u; half /= 2u) {
    let at = (team % half) * 4u * TEAM + local % TEAM;
    workgroupBarrier();
    if (team >= half && team < 2u * half) {
      sum_keep(at, t.r0.a);
      sum_keep(at + TEAM, t.r1.a);
      sum_keep(at + 2u * TEAM, t.r2.a);
      sum_keep(at + 3u * TEAM, t.r3.a);
    }
    workgroupBarrier();
    if (team < half) {
      t.r0.a += sum_kept(at);
      t.r1.a += sum_kept(at + TEAM);
      t.r2.a += sum_kept(at + 2u * TEAM);
      t.r3.a += sum_kept(at + 3u * TEAM);
    }
  }
  return t;
}

fn put_quad(b: u32, slice: u32, m: u32, n: u32, sum: vec4<f32>) {
  if (p.slices < 2u) {
    linear_put(b, m, n, sum);
    return;
  }
  for (var i = 0u; i < 4u && n + i < p.n && m < p.m; i++) {
    y[(slice * p.m + m) * p.n + n + i] = bitcast<u32>(sum[i]);
  }
}

fn put(b: u32, slice: u32, m: u32, n: u32, sum: Cols) {
  put_quad(b, slice, m, n, sum.a);
  if (C > 1u) {
    put_quad(b, slice, m, n + 4u * TX, sum.b);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let down = (p.m + R * TY - 1u) / (R * TY); // tiles of rows: neighbours share w
  let across = (p.n + COLS - 1u) / COLS;
  let slice = index / (down * across) % p.slices;
  let b = index / (down * across * p.slices);
  if (b >= p.batch) { // a folded grid has more workgroups
    return;
  }
  let m0 = index % down * (R * TY);
  let n0 = index / down % across * COLS;
  let tx = local % TX;
  let ty = local % TEAM / TX;
  let first = team_of(local) * (DEEP / TEAMS);
  let x_at = vec2<u32>(x_place(b, m0, local), x_place(b, m0 + WG / DEEP, local));
  let w_at = vec2<u32>(w_place(b, n0, local), w_place(b, n0, local + WG));
  let to_k = min((slice + 1u) * p.span, p.k);
  var next = load(x_at, w_at, slice * p.span, local);
  var sums = Sums();
  for (var k = slice * p.span; k < to_k; k += 4u * DEEP) {
    workgroupBarrier();
    store(next, local);
    workgroupBarrier();
    if (k + 4u * DEEP < to_k) {
      next = load(x_at, w_at, k + 4u * DEEP, local);
    }
    sums = quad_add(sums, first, tx, ty);
    sums = quad_add(sums, first + 1u, tx, ty);
    sums = quad_add(sums, first + 2u, tx, ty);
    sums = quad_add(sums, first + 3u, tx, ty);
  }
  if (TEAMS > 1u) {
    sums = teams_add(sums, local);
    if (local >= TEAM) {
      return;
    }
  }
  let m = m0 + ty;
  let n = n0 + 4u * tx;
  put(b, slice, m, n, sums.r0);
  put(b, slice, m + TY, n, sums.r1);
  put(b, slice, m + 2u * TY, n, sums.r2);
  put(b, slice, m + 3u * TY, n, sums.r3);
  if (R > 4u) {
    put(b, slice, m + 4u * TY, n, sums.r4);
    put(b, slice, m + 5u * TY, n, sums.r5);
    put(b, slice, m + 6u * TY, n, sums.r6);
    put(b, slice, m + 7u * TY, n, sums.r7);
  }
}

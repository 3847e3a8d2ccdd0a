// attn_chunk for subgroups of at least 32: shuffles, four barriers, loads that do not wait for each
// other. WG is 256; the kernel says const LANES (threads that share a key) and const QUADS (of a
// head; 0: dim()), so that divisions are shifts.
const LOWEST = -3.4028234e38;
const PARTS = WG / 32u;
const WIDE = 4u * LANES; // threads of a value row
fn dim() -> u32 { return select(p.dim, QUADS, QUADS != 0u); }
var<workgroup> query: array<vec4<f32>, 256>;    // (4 rows, dim)
var<workgroup> weights: array<vec4<f32>, MOST>; // (keys): four rows
var<workgroup> tops: array<vec4<f32>, PARTS>;
var<workgroup> totals: array<vec4<f32>, PARTS>;
var<workgroup> sums: array<vec4<f32>, 512>; // (parts, rows, dim)

// What a thread reads first, on its way before anything else: its first key and four values.
struct Early { k0: vec4<f32>, k1: vec4<f32>, k2: vec4<f32>, k3: vec4<f32>,
               v0: vec4<f32>, v1: vec4<f32>, v2: vec4<f32>, v3: vec4<f32> }
fn key_part(i: u32, lane: u32, step: u32) -> vec4<f32> {
  return key_cached(i, min(lane + step * LANES, dim() - 1u));
}
fn early(count: u32, local: u32) -> Early {
  let i = min(local / LANES, count - 1u);
  let lane = local % LANES;
  let d = min(local % WIDE, dim() - 1u);
  let row = local / WIDE;
  return Early(key_part(i, lane, 0u), key_part(i, lane, 1u), key_part(i, lane, 2u), key_part(i, lane, 3u),
               value_cached(min(row, count - 1u), d), value_cached(min(row + WG / WIDE, count - 1u), d),
               value_cached(min(row + 2u * (WG / WIDE), count - 1u), d),
               value_cached(min(row + 3u * (WG / WIDE), count - 1u), d));
}

fn add_part(s: vec4<f32>, raw: vec4<f32>, i: u32, lane: u32, step: u32) -> vec4<f32> {
  let d = lane + step * LANES;
  let at = min(d, dim() - 1u);
  let key = select(vec4<f32>(), key_now(raw, i, at), d < dim());
  return s + vec4<f32>(dot(key, query[at]), dot(key, query[dim() + at]), dot(key, query[2u * dim() + at]),
                       dot(key, query[3u * dim() + at]));
}
fn score(i: u32, lane: u32, k0: vec4<f32>, k1: vec4<f32>, k2: vec4<f32>, k3: vec4<f32>) -> vec4<f32> {
  var s = add_part(vec4<f32>(), k0, i, lane, 0u);
  s = add_part(s, k1, i, lane, 1u);
  s = add_part(s, k2, i, lane, 2u);
  s = add_part(s, k3, i, lane, 3u);
  s += subgroupShuffleXor(s, 1u);
  s += subgroupShuffleXor(s, 2u);
  if (LANES > 4u) {
    s += subgroupShuffleXor(s, 4u);
  }
  if (LANES > 8u) {
    s += subgroupShuffleXor(s, 8u);
  }
  return s * p.scale;
}

fn max32(value: vec4<f32>) -> vec4<f32> {
  var v = max(value, subgroupShuffleXor(value, 1u));
  v = max(v, subgroupShuffleXor(v, 2u));
  v = max(v, subgroupShuffleXor(v, 4u));
  v = max(v, subgroupShuffleXor(v, 8u));
  return max(v, subgroupShuffleXor(v, 16u));
}
fn add32(value: vec4<f32>) -> vec4<f32> {
  var v = value + subgroupShuffleXor(value, 1u);
  v += subgroupShuffleXor(v, 2u);
  v += subgroupShuffleXor(v, 4u);
  v += subgroupShuffleXor(v, 8u);
  return v + subgroupShuffleXor(v, 16u);
}

// Two rows of all parts, or four where a row is short: added up and given away.
fn give(r: u32, rows: u32, local: u32, most: vec4<f32>, sum: vec4<f32>) {
  let parts = WG / max(WIDE, 32u);
  for (var i = local; i < rows * dim(); i += WG) {
    var total = sums[i];
    for (var part = 1u; part < parts; part++) {
      total += sums[part * rows * dim() + i];
    }
    let at = r + i / dim();
    let m = select(most.xy, most.zw, at > 1u);
    let s = select(sum.xy, sum.zw, at > 1u);
    put_part(at, i % dim(), total, select(m.x, m.y, (at & 1u) != 0u), select(s.x, s.y, (at & 1u) != 0u));
  }
}

struct Four { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> } // by row
fn add_value(acc: Four, raw: vec4<f32>, i: u32, d: u32, count: u32) -> Four {
  let value = select(vec4<f32>(), value_now(raw, i, d), i < count); // nothing times infinity either
  let w = select(vec4<f32>(), weights[min(i, MOST - 1u)], i < count);
  return Four(acc.a + w.x * value, acc.b + w.y * value, acc.c + w.z * value, acc.d + w.w * value);
}

fn attend(first: Early, count: u32, local: u32) {
  let lane = local % LANES;
  var top = vec4<f32>(LOWEST);
  var k0 = first.k0;
  var k1 = first.k1;
  var k2 = first.k2;
  var k3 = first.k3;
  for (var turn = 0u; turn < count; turn += WG / LANES) {
    let mine = turn + local / LANES;
    let i = min(mine, count - 1u);
    if (turn > 0u) {
      k0 = key_part(i, lane, 0u);
      k1 = key_part(i, lane, 1u);
      k2 = key_part(i, lane, 2u);
      k3 = key_part(i, lane, 3u);
    }
    let raw = score(i, lane, k0, k1, k2, k3);
    let s = vec4<f32>(masked(raw.x, 0u, i), masked(raw.y, 1u, i), masked(raw.z, 2u, i), masked(raw.w, 3u, i));
    if (lane == 0u && mine < count) {
      weights[mine] = s;
    }
    top = max(top, s);
  }
  top = max32(top);
  if (local % 32u == 0u) {
    tops[local / 32u] = top;
  }
  workgroupBarrier();

  var most = tops[0];
  for (var i = 1u; i < PARTS; i++) {
    most = max(most, tops[i]);
  }
  var weight = vec4<f32>();
  if (local < count) {
    let s = weights[local];
    weight = select(exp(s - most), vec4<f32>(), s < vec4<f32>(LOWEST));
    weights[local] = weight;
  }
  let part_sum = add32(weight);
  if (local % 32u == 0u) {
    totals[local / 32u] = part_sum;
  }
  workgroupBarrier();

  let d = local % WIDE;
  let at = min(d, dim() - 1u);
  var acc = Four();
  let row = local / WIDE;
  let rows = WG / WIDE;
  acc = add_value(acc, first.v0, row, at, count);
  acc = add_value(acc, first.v1, row + rows, at, count);
  acc = add_value(acc, first.v2, row + 2u * rows, at, count);
  acc = add_value(acc, first.v3, row + 3u * rows, at, count);
  for (var i = row + 4u * rows; i < count; i += rows) {
    acc = add_value(acc, value_cached(i, at), i, at, count);
  }
  var a = acc.a;
  var b = acc.b;
  var c = acc.c;
  var e = acc.d;
  if (WIDE < 32u) { // two value rows a subgroup
    a += subgroupShuffleXor(a, 16u);
    b += subgroupShuffleXor(b, 16u);
    c += subgroupShuffleXor(c, 16u);
    e += subgroupShuffleXor(e, 16u);
  }
  var sum = totals[0];
  for (var i = 1u; i < PARTS; i++) {
    sum += totals[i];
  }
  let part = local / max(WIDE, 32u);
  let mine = d < dim() && local % max(WIDE, 32u) < WIDE;
  if (dim() <= 16u) {
    if (mine) {
      let to = part * 4u * dim() + d;
      sums[to] = a;
      sums[to + dim()] = b;
      sums[to + 2u * dim()] = c;
      sums[to + 3u * dim()] = e;
    }
    workgroupBarrier();
    give(0u, 4u, local, most, sum);
    return;
  }
  let to = part * 2u * dim() + d;
  if (mine) {
    sums[to] = a;
    sums[to + dim()] = b;
  }
  workgroupBarrier();
  give(0u, 2u, local, most, sum);
  workgroupBarrier();
  if (mine) {
    sums[to] = c;
    sums[to + dim()] = e;
  }
  workgroupBarrier();
  give(2u, 2u, local, most, sum);
}

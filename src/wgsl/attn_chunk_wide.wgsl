// attn_chunk for subgroups of at least 32: shuffles, four barriers, loads that do not wait for each
// other. WG is 256; the kernel says const LANES (threads that share a key) and const QUADS (of a
// head; 0: dim()), so that divisions are shifts.
const LOWEST = -3.4028234e38;
const WIDE = 4u * LANES; // threads of a value row
fn dim() -> u32 { return select(p.dim, QUADS, QUADS != 0u); }
var<workgroup> query: array<vec4<f32>, 256>;    // (4 rows, dim)
var<workgroup> weights: array<f32, MOST * 4u>;  // (keys, 4 rows)
var<workgroup> most: array<f32, 4>;  // by row
var<workgroup> total: array<f32, 4>;
var<workgroup> sums: array<vec4<f32>, 512>; // (parts, rows, dim)

fn key_part(i: u32, lane: u32, step: u32) -> vec4<f32> {
  return key_cached(i, min(lane + step * LANES, dim() - 1u));
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

// One row's scores become weights, by 32 neighbours; what they add up to is in `most` and `total`.
fn soften(r: u32, lane: u32, count: u32) {
  var top = LOWEST;
  for (var i = lane; i < count; i += 32u) {
    top = max(top, weights[4u * i + r]);
  }
  for (var step = 1u; step < 32u; step *= 2u) {
    top = max(top, subgroupShuffleXor(top, step));
  }
  var sum = 0.0;
  for (var i = lane; i < count; i += 32u) {
    let s = weights[4u * i + r];
    let weight = select(exp(s - top), 0.0, s < LOWEST);
    weights[4u * i + r] = weight;
    sum += weight;
  }
  for (var step = 1u; step < 32u; step *= 2u) {
    sum += subgroupShuffleXor(sum, step);
  }
  if (lane == 0u) {
    most[r] = top;
    total[r] = sum;
  }
}

// Two rows of all parts, or four where a row is short: added up and given away.
fn give(r: u32, rows: u32, local: u32) {
  let parts = WG / max(WIDE, 32u);
  for (var i = local; i < rows * dim(); i += WG) {
    var value = sums[i];
    for (var part = 1u; part < parts; part++) {
      value += sums[part * rows * dim() + i];
    }
    let at = r + i / dim();
    put_part(at, i % dim(), value, most[at], total[at]);
  }
}

struct Four { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> } // by row
fn add_value(acc: Four, raw: vec4<f32>, i: u32, d: u32, count: u32) -> Four {
  if (i >= count) {
    return acc;
  }
  let value = value_now(raw, i, d);
  let w = vec4<f32>(weights[4u * i], weights[4u * i + 1u], weights[4u * i + 2u], weights[4u * i + 3u]);
  return Four(acc.a + w.x * value, acc.b + w.y * value, acc.c + w.z * value, acc.d + w.w * value);
}

fn attend(count: u32, local: u32) {
  let lane = local % LANES;
  for (var turn = 0u; turn < count; turn += WG / LANES) {
    let mine = turn + local / LANES;
    let i = min(mine, count - 1u);
    let raw = score(i, lane, key_part(i, lane, 0u), key_part(i, lane, 1u), key_part(i, lane, 2u),
                    key_part(i, lane, 3u));
    if (lane == 0u && mine < count) {
      weights[4u * mine] = masked(raw.x, 0u, i);
      weights[4u * mine + 1u] = masked(raw.y, 1u, i);
      weights[4u * mine + 2u] = masked(raw.z, 2u, i);
      weights[4u * mine + 3u] = masked(raw.w, 3u, i);
    }
  }
  workgroupBarrier();
  if (local < 128u) {
    soften(local / 32u, local % 32u, count);
  }
  workgroupBarrier();

  let d = local % WIDE;
  let at = min(d, dim() - 1u);
  var acc = Four();
  let row = local / WIDE;
  let rows = WG / WIDE;
  for (var i = row; i < count; i += 4u * rows) { // four loads at a time
    let v0 = value_cached(i, at);
    let v1 = value_cached(min(i + rows, count - 1u), at);
    let v2 = value_cached(min(i + 2u * rows, count - 1u), at);
    let v3 = value_cached(min(i + 3u * rows, count - 1u), at);
    acc = add_value(acc, v0, i, at, count);
    acc = add_value(acc, v1, i + rows, at, count);
    acc = add_value(acc, v2, i + 2u * rows, at, count);
    acc = add_value(acc, v3, i + 3u * rows, at, count);
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
    give(0u, 4u, local);
    return;
  }
  let to = part * 2u * dim() + d;
  if (mine) {
    sums[to] = a;
    sums[to + dim()] = b;
  }
  workgroupBarrier();
  give(0u, 2u, local);
  workgroupBarrier();
  if (mine) {
    sums[to] = c;
    sums[to + dim()] = e;
  }
  workgroupBarrier();
  give(2u, 2u, local);
}

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

fn score(i: u32, lane: u32) -> vec4<f32> {
  var s = vec4<f32>();
  for (var step = 0u; step < 4u; step++) {
    let d = lane + step * LANES;
    let at = min(d, dim() - 1u);
    let key = select(vec4<f32>(), key_quad(i, at), d < dim());
    s += vec4<f32>(dot(key, query[at]), dot(key, query[dim() + at]), dot(key, query[2u * dim() + at]),
                   dot(key, query[3u * dim() + at]));
  }
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

fn attend(count: u32, local: u32) {
  let lane = local % LANES;
  var top = vec4<f32>(LOWEST);
  for (var turn = 0u; turn < count; turn += WG / LANES) {
    let mine = turn + local / LANES;
    let i = min(mine, count - 1u);
    let raw = score(i, lane);
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
  var a = vec4<f32>();
  var b = vec4<f32>();
  var c = vec4<f32>();
  var e = vec4<f32>();
  for (var i = local / WIDE; i < count; i += WG / WIDE) {
    let value = value_quad(i, at);
    let w = weights[i];
    a += w.x * value;
    b += w.y * value;
    c += w.z * value;
    e += w.w * value;
  }
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

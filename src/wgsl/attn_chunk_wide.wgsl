// attn_chunk for subgroups of at least 32: each 32 neighbours, a team, attend to keys of their own,
// and what the teams found is added up at the end: two barriers. Keys and values of the next turn are
// always under way, the first ones before the query is there. WG is 256; the kernel says const LANES (threads that
// share a key) and const QUADS (of a head, at most 4 · LANES; 0: dim()), so that divisions are shifts.
const LOWEST = -3.4028234e38;
const TEAMS = WG / 32u;
const TURN = WG / LANES;          // keys of all teams at a time
const WIDE = 4u * LANES;          // threads of a value row
const SPAN = max(1u, WIDE / 32u); // quads of a value that a thread has
const ROWS = 16u / LANES;         // rows that are added up at a time
fn dim() -> u32 { return select(p.dim, QUADS, QUADS != 0u); }
var<workgroup> query: array<vec4<f32>, 4u * WIDE>; // (4 rows, dim)
var<workgroup> sums: array<vec4<f32>, TEAMS * ROWS * WIDE>; // (teams, rows, dim)
var<workgroup> most: array<vec4<f32>, TEAMS>; // by row
var<workgroup> total: array<vec4<f32>, TEAMS>;

struct Four { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }
struct Early { k: Four, v: Four } // four quads of a key, four of values

// A thread's key, and its four quads.
fn key_of(local: u32) -> u32 { return local / LANES; }
fn key_at(local: u32, step: u32) -> u32 { return min(local % LANES + step * LANES, dim() - 1u); }
// The values it meets, in an order of its own, so that their weights come by xor; and its quads.
fn value_of(local: u32, step: u32) -> u32 { return key_of(local) ^ (step / SPAN); }
fn value_at(local: u32, step: u32) -> u32 {
  return min(local % min(WIDE, 32u) + step % SPAN * 32u, dim() - 1u);
}

fn key_early(turn: u32, count: u32, local: u32, step: u32) -> vec4<f32> {
  return key_cached(min(turn + key_of(local), count - 1u), key_at(local, step));
}
fn value_early(turn: u32, count: u32, local: u32, step: u32) -> vec4<f32> {
  return value_cached(min(turn + value_of(local, step), count - 1u), value_at(local, step));
}
fn attend_early(turn: u32, count: u32, local: u32) -> Early {
  return Early(Four(key_early(turn, count, local, 0u), key_early(turn, count, local, 1u),
                    key_early(turn, count, local, 2u), key_early(turn, count, local, 3u)),
               Four(value_early(turn, count, local, 0u), value_early(turn, count, local, 1u),
                    value_early(turn, count, local, 2u), value_early(turn, count, local, 3u)));
}

fn add_key(s: vec4<f32>, cached: vec4<f32>, i: u32, local: u32, step: u32) -> vec4<f32> {
  let at = key_at(local, step);
  let there = local % LANES + step * LANES < dim();
  let key = select(vec4<f32>(), key_now(cached, i, at), there);
  return s + vec4<f32>(dot(key, query[at]), dot(key, query[dim() + at]), dot(key, query[2u * dim() + at]),
                       dot(key, query[3u * dim() + at]));
}
fn score(k: Four, i: u32, local: u32) -> vec4<f32> {
  var s = add_key(vec4<f32>(), k.a, i, local, 0u);
  s = add_key(s, k.b, i, local, 1u);
  s = add_key(s, k.c, i, local, 2u);
  s = add_key(s, k.d, i, local, 3u);
  for (var far = 1u; far < LANES; far *= 2u) {
    s += subgroupShuffleXor(s, far);
  }
  return s * p.scale;
}

fn add_value(acc: Four, w: vec4<f32>, cached: vec4<f32>, turn: u32, local: u32, step: u32) -> Four {
  let value = value_now(cached, turn + value_of(local, step), value_at(local, step));
  return Four(acc.a + w.x * value, acc.b + w.y * value, acc.c + w.z * value, acc.d + w.w * value);
}
fn scaled(acc: Four, by: vec4<f32>) -> Four {
  return Four(acc.a * by.x, acc.b * by.y, acc.c * by.z, acc.d * by.w);
}

// One row of a round: what this thread has of it.
fn put_sum(e: u32, near: vec4<f32>, far: vec4<f32>, local: u32) {
  let to = (local / 32u * ROWS + e) * dim();
  let d = local % 32u;
  if (d < min(dim(), WIDE)) {
    sums[to + d] = near;
  }
  if (SPAN > 1u && d + 32u < dim()) {
    sums[to + d + 32u] = far;
  }
}
// The round's rows, from row r on, added up and given away.
fn give(r: u32, local: u32) {
  workgroupBarrier();
  if (local < ROWS * dim()) {
    let at = r + local / dim();
    var top = most[0][at];
    for (var team = 1u; team < TEAMS; team++) {
      top = max(top, most[team][at]);
    }
    var value = vec4<f32>();
    var sum = 0.0;
    for (var team = 0u; team < TEAMS; team++) {
      let factor = exp(most[team][at] - top);
      value += sums[team * ROWS * dim() + local] * factor;
      sum += total[team][at] * factor;
    }
    put_part(at, local % dim(), value, top, sum);
  }
}

// `early`: attend_early from key 0 on. Uniform control flow only.
fn attend(count: u32, local: u32, early: Early) {
  workgroupBarrier();
  var next = early;
  var top = vec4<f32>(LOWEST);
  var sum = vec4<f32>();
  var near = Four();
  var far = Four();
  for (var turn = 0u; turn < count; turn += TURN) {
    let now = next;
    if (turn + TURN < count) {
      next = attend_early(turn + TURN, count, local);
    }
    let i = turn + key_of(local);
    var s = score(now.k, i, local);
    s = vec4<f32>(masked(s.x, 0u, i), masked(s.y, 1u, i), masked(s.z, 2u, i), masked(s.w, 3u, i));
    s = select(vec4<f32>(p.never), s, i < count);
    var high = max(top, s);
    for (var other = LANES; other < 32u; other *= 2u) {
      high = max(high, subgroupShuffleXor(high, other));
    }
    let fade = exp(top - high);
    let w = select(exp(s - high), vec4<f32>(), s < vec4<f32>(LOWEST));
    top = high;
    sum = sum * fade + w;
    near = add_value(scaled(near, fade), w, now.v.a, turn, local, 0u);
    if (SPAN == 1u) {
      near = add_value(near, subgroupShuffleXor(w, LANES), now.v.b, turn, local, 1u);
      near = add_value(near, subgroupShuffleXor(w, 2u * LANES), now.v.c, turn, local, 2u);
      near = add_value(near, subgroupShuffleXor(w, 3u * LANES), now.v.d, turn, local, 3u);
    } else {
      let w1 = subgroupShuffleXor(w, LANES);
      far = add_value(scaled(far, fade), w, now.v.b, turn, local, 1u);
      near = add_value(near, w1, now.v.c, turn, local, 2u);
      far = add_value(far, w1, now.v.d, turn, local, 3u);
    }
  }
  for (var other = LANES; other < 32u; other *= 2u) {
    sum += subgroupShuffleXor(sum, other);
  }
  if (WIDE < 32u) { // two value rows a team
    near = Four(near.a + subgroupShuffleXor(near.a, 16u), near.b + subgroupShuffleXor(near.b, 16u),
                near.c + subgroupShuffleXor(near.c, 16u), near.d + subgroupShuffleXor(near.d, 16u));
  }
  if (local % 32u == 0u) {
    most[local / 32u] = top;
    total[local / 32u] = sum;
  }
  put_sum(0u, near.a, far.a, local);
  if (ROWS == 4u) {
    put_sum(1u, near.b, far.b, local);
    put_sum(2u, near.c, far.c, local);
    put_sum(3u, near.d, far.d, local);
    give(0u, local);
  } else if (ROWS == 2u) {
    put_sum(1u, near.b, far.b, local);
    give(0u, local);
    workgroupBarrier();
    put_sum(0u, near.c, far.c, local);
    put_sum(1u, near.d, far.d, local);
    give(2u, local);
  } else {
    give(0u, local);
    workgroupBarrier();
    put_sum(0u, near.b, far.b, local);
    give(1u, local);
    workgroupBarrier();
    put_sum(0u, near.c, far.c, local);
    give(2u, local);
    workgroupBarrier();
    put_sum(0u, near.d, far.d, local);
    give(3u, local);
  }
}

// attn_chunk for subgroups of at least 32: each 32 neighbours, a team, attend to keys of their own,
// and what the teams found is added up at the end. Keys and values of the next turn are
// always under way, the first ones before the query is there. WG is 256; the kernel says const LANES
// (threads that share a key) and const QUADS (of a head, at most 4 · LANES; 0: dim()), so that
// divisions are shifts. Another library says how many rows there are (attn_rows1, attn_rows4).
const LOWEST = -3.4028234e38;
const TEAMS = WG / 32u;
const TURN = WG / LANES;               // keys of all teams at a time
const WIDE = 4u * LANES;               // threads of a value row
const SPAN = max(1u, WIDE / 32u);      // quads of a value that a thread has
const ROUND = min(HEADS, 16u / LANES); // rows that are added up at a time
fn dim() -> u32 { return select(p.dim, QUADS, QUADS != 0u); }
var<workgroup> query: array<vec4<f32>, HEADS * WIDE>; // (rows, dim)
var<workgroup> parts_of: array<vec4<f32>, TEAMS * ROUND * WIDE>; // (teams, rows, dim)
var<workgroup> most: array<Scores, TEAMS>;
var<workgroup> total: array<Scores, TEAMS>;

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

fn key_scores(cached: vec4<f32>, i: u32, local: u32, step: u32) -> Scores {
  let at = key_at(local, step);
  let there = local % LANES + step * LANES < dim();
  return scores_of(select(vec4<f32>(), key_now(cached, i, at), there), at);
}
fn scores(k: Four, i: u32, local: u32) -> Scores {
  var s = key_scores(k.a, i, local, 0u);
  s += key_scores(k.b, i, local, 1u);
  s += key_scores(k.c, i, local, 2u);
  s += key_scores(k.d, i, local, 3u);
  for (var far = 1u; far < LANES; far *= 2u) {
    s += subgroupShuffleXor(s, far);
  }
  return s * p.scale;
}
// Past the end the weight is 0; the value is then that of the last key, not what lies in its place.
fn value_add(s: Sums, w: Scores, v: vec4<f32>, turn: u32, count: u32, local: u32, step: u32) -> Sums {
  let i = min(turn + value_of(local, step), count - 1u);
  return sums_add(s, w, value_now(v, i, value_at(local, step)));
}

// Row e of a round: what this thread has of it.
fn put_sum(e: u32, near: vec4<f32>, far: vec4<f32>, local: u32) {
  let to = (local / 32u * ROUND + e) * dim();
  let d = local % 32u;
  if (d < min(dim(), WIDE)) {
    parts_of[to + d] = near;
  }
  if (SPAN > 1u && d + 32u < dim()) {
    parts_of[to + d + 32u] = far;
  }
}
// The round's rows, from row r on, added up and given away.
fn give(r: u32, local: u32) {
  if (local >= ROUND * dim()) {
    return;
  }
  let at = r + local / dim();
  var top = most_of(0u, at);
  for (var team = 1u; team < TEAMS; team++) {
    top = max(top, most_of(team, at));
  }
  var value = vec4<f32>();
  var sum = 0.0;
  for (var team = 0u; team < TEAMS; team++) {
    let factor = exp(most_of(team, at) - top);
    value += parts_of[team * ROUND * dim() + local] * factor;
    sum += total_of(team, at) * factor;
  }
  put_part(at, local % dim(), value, top, sum);
}

// `early`: attend_early from key 0 on. Uniform control flow only.
fn attend(count: u32, local: u32, early: Early) {
  workgroupBarrier();
  var next = early;
  var top = Scores(LOWEST);
  var sum = Scores();
  var near = Sums();
  var far = Sums();
  for (var turn = 0u; turn < count; turn += TURN) {
    let now = next;
    if (turn + TURN < count) {
      next = attend_early(turn + TURN, count, local);
    }
    let i = turn + key_of(local);
    let s = select(Scores(p.never), scores_masked(scores(now.k, i, local), i), i < count);
    var high = max(top, s);
    for (var other = LANES; other < 32u; other *= 2u) {
      high = max(high, subgroupShuffleXor(high, other));
    }
    let fade = exp(top - high);
    let w = select(exp(s - high), Scores(), s < Scores(LOWEST));
    top = high;
    sum = sum * fade + w;
    near = value_add(sums_scaled(near, fade), w, now.v.a, turn, count, local, 0u);
    let w1 = subgroupShuffleXor(w, LANES);
    if (SPAN == 1u) {
      near = value_add(near, w1, now.v.b, turn, count, local, 1u);
      near = value_add(near, subgroupShuffleXor(w, 2u * LANES), now.v.c, turn, count, local, 2u);
      near = value_add(near, subgroupShuffleXor(w, 3u * LANES), now.v.d, turn, count, local, 3u);
    } else {
      far = value_add(sums_scaled(far, fade), w, now.v.b, turn, count, local, 1u);
      near = value_add(near, w1, now.v.c, turn, count, local, 2u);
      far = value_add(far, w1, now.v.d, turn, count, local, 3u);
    }
  }
  for (var other = LANES; other < 32u; other *= 2u) {
    sum += subgroupShuffleXor(sum, other);
  }
  if (WIDE < 32u) { // two value rows a team
    near = sums_of_halves(near);
  }
  if (local % 32u == 0u) {
    most[local / 32u] = top;
    total[local / 32u] = sum;
  }
  for (var r = 0u; r < HEADS; r += ROUND) {
    sums_put(near, far, r, local);
    workgroupBarrier();
    give(r, local);
    if (r + ROUND < HEADS) {
      workgroupBarrier();
    }
  }
}

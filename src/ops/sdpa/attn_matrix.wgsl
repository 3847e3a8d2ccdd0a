// Attention of many rows (query, head) by subgroup matrices: products of f16, sums of f32. A workgroup
// takes GROUPS · SIDE rows that share a head of k and v, a subgroup SIDE of them, and goes through the
// keys in tiles of KEYS. A matrix' elements cannot be reached, so scores go through workgroup memory,
// and so do results when they must fade: only when a maximum grew by more than 8, which f16 has room for.
// Where keys are split among workgroups (chunks > 1), what is written are parts for attn_merge.
// Sizes of workgroup variables are multiples of 16 bytes, rows padded by 16 against bank conflicts.
// uses: grid attn_params
const SIDE = 16u;  // m, n and k of a product
const LANES = 32u; // threads of a subgroup
const WIDTH = 64u; // elements of a head, at most
const GROUPS = 4u;
const KEYS = 32u;
const WG = GROUPS * LANES;
const BLOCKS = WIDTH / SIDE;     // of a row of q, k, v or the result
const ACROSS = KEYS / SIDE;      // of a row of scores
const LINE = WIDTH / 4u + 2u;    // quads of a row: of keys and values,
const S_LINE = KEYS / 4u + 1u;   // of scores,
const P_LINE = KEYS / 4u + 2u;   // of weights
const PER = LANES / SIDE;        // threads of a row
const SHARE = KEYS / 4u / PER;   // quads that each of them has
const STEP = SIDE / 4u;          // quads of a block
const LOG2E = 1.4426950408889634;
const LOWEST = -3.4028234e38;
alias Left = subgroup_matrix_left<f16, SIDE, SIDE>;
alias Right = subgroup_matrix_right<f16, SIDE, SIDE>;
alias Sums = subgroup_matrix_result<f32, SIDE, SIDE>;
@group(0) @binding(0) var<storage, read>       q: array<Quad>;
@group(0) @binding(1) var<storage, read>       k: array<Quad>;
@group(0) @binding(2) var<storage, read>       v: array<Quad>;
@group(0) @binding(3) var<storage, read>       bias: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<Quad>; // like q; or parts of f32, see attn_split
@group(0) @binding(5) var<uniform>             p: Params;
var<workgroup> tile_k: array<vec4<f16>, KEYS * LINE>;
var<workgroup> tile_v: array<vec4<f16>, KEYS * LINE>; // of this turn and the next
var<workgroup> scores: array<array<vec4<f32>, SIDE * S_LINE>, GROUPS>; // and results on their way
var<workgroup> weights: array<array<vec4<f16>, SIDE * P_LINE>, GROUPS>; // and q on its way
var<workgroup> fades: array<atomic<u32>, 4>; // the first: some row's results must fade

fn row_at(kv_head: u32, r: u32) -> u32 {
  return r / p.heads_per_kv * p.q_token + (kv_head * p.heads_per_kv + r % p.heads_per_kv) * p.q_head;
}

// Where the mask's row for row r begins.
fn mask_at(kv_head: u32, r: u32) -> u32 {
  let head = kv_head * p.heads_per_kv + r % p.heads_per_kv;
  return head / p.mask_heads % p.mask_batches * p.mask.x + head % p.mask_heads * p.mask.y + r / p.heads_per_kv * p.mask.z;
}

fn bias_at(b: u32) -> f32 { return elem_get(bias[b / ELEMS], b % ELEMS); }

// Quads of keys and values that a thread brings of a tile: 4 of each, or more in several rounds.
struct Ahead { k0: vec4<f32>, k1: vec4<f32>, k2: vec4<f32>, k3: vec4<f32>, v0: vec4<f32>, v1: vec4<f32>, v2: vec4<f32>, v3: vec4<f32> }
const QUADS_OF = WIDTH / 4u; // of a key
const LOADS = KEYS * QUADS_OF / WG;
const ROUNDS = (LOADS + 3u) / 4u;

fn quad_at(i: u32, tile: u32, base: u32, last: u32) -> u32 {
  return base + min(tile + i / QUADS_OF, last) * p.k_token + i % QUADS_OF;
}
fn within(i: u32) -> bool { return i % QUADS_OF < p.dim; }
fn key_quad(i: u32, tile: u32, base: u32, last: u32) -> vec4<f32> {
  return select(vec4<f32>(), quad_get(k[quad_at(i, tile, base, last)]), within(i));
}
fn value_quad(i: u32, tile: u32, base: u32, last: u32) -> vec4<f32> {
  return select(vec4<f32>(), quad_get(v[quad_at(i, tile, base, last)]), within(i));
}

fn fetch(round: u32, tile: u32, base: u32, last: u32, local: u32) -> Ahead {
  let i = local + round * 4u * WG;
  var a: Ahead;
  a.k0 = key_quad(i, tile, base, last);
  a.k1 = key_quad(i + WG, tile, base, last);
  a.k2 = key_quad(i + 2u * WG, tile, base, last);
  a.k3 = key_quad(i + 3u * WG, tile, base, last);
  a.v0 = value_quad(i, tile, base, last);
  a.v1 = value_quad(i + WG, tile, base, last);
  a.v2 = value_quad(i + 2u * WG, tile, base, last);
  a.v3 = value_quad(i + 3u * WG, tile, base, last);
  return a;
}

fn place(i: u32) -> u32 { return i / QUADS_OF * LINE + i % QUADS_OF; }
fn keep_k(a: Ahead, round: u32, local: u32) {
  let i = local + round * 4u * WG;
  tile_k[place(i)] = vec4<f16>(a.k0);
  tile_k[place(i + WG)] = vec4<f16>(a.k1);
  tile_k[place(i + 2u * WG)] = vec4<f16>(a.k2);
  tile_k[place(i + 3u * WG)] = vec4<f16>(a.k3);
}
fn keep_v(a: Ahead, round: u32, local: u32) {
  let i = local + round * 4u * WG;
  tile_v[place(i)] = vec4<f16>(a.v0);
  tile_v[place(i + WG)] = vec4<f16>(a.v1);
  tile_v[place(i + 2u * WG)] = vec4<f16>(a.v2);
  tile_v[place(i + 3u * WG)] = vec4<f16>(a.v3);
}

// What a thread looks at of a tile's scores: its row of its subgroup, its first quad there.
struct Seat { sg: u32, row: u32, at: u32 }

fn query_put(c: u32, from_q: u32, seat: Seat) {
  for (var i = 0u; i < SHARE; i++) {
    let d = c * KEYS / 4u + seat.at + i;
    var quad = vec4<f32>();
    if (d < p.dim) {
      quad = quad_get(q[from_q + d]) * (p.scale * LOG2E);
    }
    weights[seat.sg][seat.row * P_LINE + seat.at + i] = vec4<f16>(quad);
  }
  workgroupBarrier();
}
fn query_get(sg: u32, block: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&weights[sg], block * STEP, P_LINE);
}

fn score_add(s: Sums, query: Left, block: u32, d: u32) -> Sums {
  return subgroupMatrixMultiplyAccumulate(query, subgroupMatrixLoad<Right, col_major>(&tile_k, block * SIDE * LINE + d * STEP, LINE), s);
}
fn value_add(sum: Sums, w: Left, block: u32, d: u32) -> Sums {
  return subgroupMatrixMultiplyAccumulate(w, subgroupMatrixLoad<Right, row_major>(&tile_v, block * SIDE * LINE + d * STEP, LINE), sum);
}

fn result_put(sg: u32, block: u32, sum: Sums) {
  subgroupMatrixStore<row_major>(&scores[sg], block * STEP, sum, S_LINE);
}
fn result_get(sg: u32, block: u32) -> Sums {
  return subgroupMatrixLoad<Sums, row_major>(&scores[sg], block * STEP, S_LINE);
}
fn results_fade(seat: Seat, fade: f32) {
  workgroupBarrier();
  for (var i = 0u; i < SHARE; i++) {
    scores[seat.sg][seat.row * S_LINE + seat.at + i] *= fade;
  }
  workgroupBarrier();
}

// A score that the mask was added to; of keys that the row must not see it is −inf.
fn masked(score: vec4<f32>, first_key: u32, mask: u32, limit: u32, last: u32) -> vec4<f32> {
  let key = first_key + vec4<u32>(0u, 1u, 2u, 3u);
  var s = score;
  if (p.masked != 0u) {
    let at = mask + min(key, vec4<u32>(last)) * p.mask.w;
    let bias = vec4<f32>(bias_at(at.x), bias_at(at.y), bias_at(at.z), bias_at(at.w));
    // The least number stays a number: a row of such keys alone is their mean.
    s += select(LOG2E * bias, max(LOG2E * bias, vec4<f32>(0.5 * LOWEST)), bias >= vec4<f32>(LOWEST));
  }
  return select(s, vec4<f32>(p.never), key >= vec4<u32>(limit));
}

// 2^(score − most), kept as f16; gives the sum of four.
fn weight_put(sg: u32, at: u32, score: vec4<f32>, most: f32) -> f32 {
  let w = select(exp2(score - most), vec4<f32>(), score < vec4<f32>(LOWEST));
  weights[sg][at] = vec4<f16>(w);
  return dot(w, vec4<f32>(1.0));
}

// Of KEYS columns of the results, a thread's.
fn results_write(c: u32, seat: Seat, real: bool, to: u32, part: u32, factor: f32) {
  workgroupBarrier();
  for (var i = 0u; i < SHARE; i++) {
    let d = c * KEYS / 4u + seat.at + i;
    let value = scores[seat.sg][seat.row * S_LINE + seat.at + i];
    if (real && d < p.dim && p.chunks == 1u) {
      out[to + d] = quad_put(value * factor);
    } else if (real && d < p.dim) {
      part_set(part + d, value);
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows = p.seq * p.heads_per_kv;
  let tiles = (rows + GROUPS * SIDE - 1u) / (GROUPS * SIDE);
  let kv_heads = p.heads / p.heads_per_kv;
  let index = grid_group(group, groups);
  if (index >= tiles * kv_heads * p.chunks) {
    return;
  }
  let chunk = index % p.chunks;
  let kv_head = index / p.chunks % kv_heads;
  let first_row = (tiles - 1u - index / p.chunks / kv_heads) * GROUPS * SIDE; // the longest first
  let keys = min(min(p.keys, (chunk + 1u) * p.chunk),
                 p.first + (min(first_row + GROUPS * SIDE, rows) - 1u) / p.heads_per_kv + 1u);
  let all_see = select(min(keys, p.first + first_row / p.heads_per_kv + 1u), 0u, p.masked != 0u); // without a mask
  let last = keys - 1u;
  let base = kv_head * p.k_head;
  let sg = local / LANES;
  let seat = Seat(sg, local % LANES / PER, local % PER * SHARE);
  let row = first_row + sg * SIDE + seat.row;
  let from_q = row_at(kv_head, min(row, rows - 1u));
  let limit = min(keys, p.first + row / p.heads_per_kv + 1u); // keys that it may look at
  let mask = mask_at(kv_head, min(row, rows - 1u));
  let from_key = chunk * p.chunk;

  var next = fetch(0u, from_key, base, last, local);
  query_put(0u, from_q, seat);
  var q0 = query_get(sg, 0u);
  var q1 = query_get(sg, 1u);
  var q2 = Left();
  var q3 = Left();
  var q4 = Left();
  var q5 = Left();
  var q6 = Left();
  var q7 = Left();
  if (ACROSS > 2u) {
    q2 = query_get(sg, 2u % ACROSS);
    q3 = query_get(sg, 3u % ACROSS);
  }
  workgroupBarrier();
  query_put(1u, from_q, seat);
  if (ACROSS > 2u) {
    q4 = query_get(sg, 0u);
    q5 = query_get(sg, 1u);
    q6 = query_get(sg, 2u % ACROSS);
    q7 = query_get(sg, 3u % ACROSS);
  } else {
    q2 = query_get(sg, 0u);
    q3 = query_get(sg, 1u);
  }
  workgroupBarrier();
  if (ACROSS * 2u < BLOCKS) {
    query_put(2u, from_q, seat);
    q4 = query_get(sg, 0u);
    q5 = query_get(sg, 1u);
    workgroupBarrier();
    query_put(3u, from_q, seat);
    q6 = query_get(sg, 0u);
    q7 = query_get(sg, 1u);
    workgroupBarrier();
  }
  keep_k(next, 0u, local);
  keep_v(next, 0u, local);
  for (var round = 1u; round < ROUNDS; round++) {
    keep_k(fetch(round, from_key, base, last, local), round, local);
    keep_v(fetch(round, from_key, base, last, local), round, local);
  }
  if (local == 0u) {
    atomicStore(&fades[0], 0u);
  }
  workgroupBarrier();

  var a0 = Sums();
  var a1 = Sums();
  var a2 = Sums();
  var a3 = Sums();
  var a4 = Sums();
  var a5 = Sums();
  var a6 = Sums();
  var a7 = Sums();
  var most = LOWEST; // of the row; weights are 2^(score − most)
  var sum = 0.0;     // over the thread's share
  for (var tile = from_key; tile < keys; tile += KEYS) {
    let more = tile + KEYS < keys;
    {
      var s = Sums();
      s = score_add(s, q0, 0u, 0u);
      s = score_add(s, q1, 0u, 1u);
      s = score_add(s, q2, 0u, 2u);
      s = score_add(s, q3, 0u, 3u);
      if (BLOCKS > 4u) {
        s = score_add(s, q4, 0u, 4u);
        s = score_add(s, q5, 0u, 5u);
        s = score_add(s, q6, 0u, 6u);
        s = score_add(s, q7, 0u, 7u);
      }
      result_put(sg, 0u, s);
    }
    {
      var s = Sums();
      s = score_add(s, q0, 1u, 0u);
      s = score_add(s, q1, 1u, 1u);
      s = score_add(s, q2, 1u, 2u);
      s = score_add(s, q3, 1u, 3u);
      if (BLOCKS > 4u) {
        s = score_add(s, q4, 1u, 4u);
        s = score_add(s, q5, 1u, 5u);
        s = score_add(s, q6, 1u, 6u);
        s = score_add(s, q7, 1u, 7u);
      }
      result_put(sg, 1u, s);
    }
    if (ACROSS > 2u) {
      {
        var s = Sums();
        s = score_add(s, q0, 2u, 0u);
        s = score_add(s, q1, 2u, 1u);
        s = score_add(s, q2, 2u, 2u);
        s = score_add(s, q3, 2u, 3u);
        if (BLOCKS > 4u) {
          s = score_add(s, q4, 2u, 4u);
          s = score_add(s, q5, 2u, 5u);
          s = score_add(s, q6, 2u, 6u);
          s = score_add(s, q7, 2u, 7u);
        }
        result_put(sg, 2u, s);
      }
      {
        var s = Sums();
        s = score_add(s, q0, 3u, 0u);
        s = score_add(s, q1, 3u, 1u);
        s = score_add(s, q2, 3u, 2u);
        s = score_add(s, q3, 3u, 3u);
        if (BLOCKS > 4u) {
          s = score_add(s, q4, 3u, 4u);
          s = score_add(s, q5, 3u, 5u);
          s = score_add(s, q6, 3u, 6u);
          s = score_add(s, q7, 3u, 7u);
        }
        result_put(sg, 3u, s);
      }
    }
    workgroupBarrier(); // scores are there, and the keys have been read
    let at = seat.row * S_LINE + seat.at;
    var s0 = scores[sg][at];
    var s1 = scores[sg][at + 1u % SHARE];
    var s2 = scores[sg][at + 2u % SHARE];
    var s3 = scores[sg][at + 3u % SHARE];
    var s4 = scores[sg][at + 4u % SHARE];
    var s5 = scores[sg][at + 5u % SHARE];
    var s6 = scores[sg][at + 6u % SHARE];
    var s7 = scores[sg][at + 7u % SHARE];
    if (tile + KEYS > all_see) {
      let key = tile + 4u * seat.at;
      s0 = masked(s0, key, mask, limit, last);
      s1 = masked(s1, key + 4u * (1u % SHARE), mask, limit, last);
      s2 = masked(s2, key + 4u * (2u % SHARE), mask, limit, last);
      s3 = masked(s3, key + 4u * (3u % SHARE), mask, limit, last);
      if (SHARE > 4u) {
        s4 = masked(s4, key + 16u, mask, limit, last);
        s5 = masked(s5, key + 20u, mask, limit, last);
        s6 = masked(s6, key + 24u, mask, limit, last);
        s7 = masked(s7, key + 28u, mask, limit, last);
      }
    }
    var high = max(max(s0, s1), max(s2, s3));
    if (SHARE > 4u) {
      high = max(high, max(max(s4, s5), max(s6, s7)));
    }
    var top = max(max(high.x, high.y), max(high.z, high.w));
    for (var far = 1u; far < PER; far *= 2u) {
      top = max(top, subgroupShuffleXor(top, far));
    }
    var fade = 1.0;
    if (top > most + 8.0) {
      fade = exp2(most - top);
      most = top;
      sum *= fade;
      if (tile > from_key) {
        atomicStore(&fades[0], 1u);
      }
    }
    let to = seat.row * P_LINE + seat.at;
    sum += weight_put(sg, to, s0, most) + weight_put(sg, to + 1u, s1, most);
    if (SHARE > 2u) {
      sum += weight_put(sg, to + 2u, s2, most) + weight_put(sg, to + 3u, s3, most);
    }
    if (SHARE > 4u) {
      sum += weight_put(sg, to + 4u, s4, most) + weight_put(sg, to + 5u, s5, most);
      sum += weight_put(sg, to + 6u, s6, most) + weight_put(sg, to + 7u, s7, most);
    }
    if (workgroupUniformLoad(&fades[0]) != 0u) { // a barrier, too: weights and the next keys are there
      if (ACROSS > 2u) {
        result_put(sg, 0u, a0);
        result_put(sg, 1u, a1);
        result_put(sg, 2u % ACROSS, a2);
        result_put(sg, 3u % ACROSS, a3);
        results_fade(seat, fade);
        a0 = result_get(sg, 0u);
        a1 = result_get(sg, 1u);
        a2 = result_get(sg, 2u % ACROSS);
        a3 = result_get(sg, 3u % ACROSS);
        result_put(sg, 0u, a4);
        result_put(sg, 1u, a5);
        result_put(sg, 2u % ACROSS, a6);
        result_put(sg, 3u % ACROSS, a7);
        results_fade(seat, fade);
        a4 = result_get(sg, 0u);
        a5 = result_get(sg, 1u);
        a6 = result_get(sg, 2u % ACROSS);
        a7 = result_get(sg, 3u % ACROSS);
      } else {
        result_put(sg, 0u, a0);
        result_put(sg, 1u, a1);
        results_fade(seat, fade);
        a0 = result_get(sg, 0u);
        a1 = result_get(sg, 1u);
        result_put(sg, 0u, a2);
        result_put(sg, 1u, a3);
        results_fade(seat, fade);
        a2 = result_get(sg, 0u);
        a3 = result_get(sg, 1u);
        if (BLOCKS > 4u) {
          result_put(sg, 0u, a4);
          result_put(sg, 1u, a5);
          results_fade(seat, fade);
          a4 = result_get(sg, 0u);
          a5 = result_get(sg, 1u);
          result_put(sg, 0u, a6);
          result_put(sg, 1u, a7);
          results_fade(seat, fade);
          a6 = result_get(sg, 0u);
          a7 = result_get(sg, 1u);
        }
      }
      if (local == 0u) {
        atomicStore(&fades[0], 0u);
      }
    }
    {
      let w = query_get(sg, 0u);
      a0 = value_add(a0, w, 0u, 0u);
      a1 = value_add(a1, w, 0u, 1u);
      a2 = value_add(a2, w, 0u, 2u);
      a3 = value_add(a3, w, 0u, 3u);
      if (BLOCKS > 4u) {
        a4 = value_add(a4, w, 0u, 4u);
        a5 = value_add(a5, w, 0u, 5u);
        a6 = value_add(a6, w, 0u, 6u);
        a7 = value_add(a7, w, 0u, 7u);
      }
    }
    {
      let w = query_get(sg, 1u);
      a0 = value_add(a0, w, 1u, 0u);
      a1 = value_add(a1, w, 1u, 1u);
      a2 = value_add(a2, w, 1u, 2u);
      a3 = value_add(a3, w, 1u, 3u);
      if (BLOCKS > 4u) {
        a4 = value_add(a4, w, 1u, 4u);
        a5 = value_add(a5, w, 1u, 5u);
        a6 = value_add(a6, w, 1u, 6u);
        a7 = value_add(a7, w, 1u, 7u);
      }
    }
    if (ACROSS > 2u) {
      {
        let w = query_get(sg, 2u % ACROSS);
        a0 = value_add(a0, w, 2u, 0u);
        a1 = value_add(a1, w, 2u, 1u);
        a2 = value_add(a2, w, 2u, 2u);
        a3 = value_add(a3, w, 2u, 3u);
        if (BLOCKS > 4u) {
          a4 = value_add(a4, w, 2u, 4u);
          a5 = value_add(a5, w, 2u, 5u);
          a6 = value_add(a6, w, 2u, 6u);
          a7 = value_add(a7, w, 2u, 7u);
        }
      }
      {
        let w = query_get(sg, 3u % ACROSS);
        a0 = value_add(a0, w, 3u, 0u);
        a1 = value_add(a1, w, 3u, 1u);
        a2 = value_add(a2, w, 3u, 2u);
        a3 = value_add(a3, w, 3u, 3u);
        if (BLOCKS > 4u) {
          a4 = value_add(a4, w, 3u, 4u);
          a5 = value_add(a5, w, 3u, 5u);
          a6 = value_add(a6, w, 3u, 6u);
          a7 = value_add(a7, w, 3u, 7u);
        }
      }
    }
    if (more) {
      workgroupBarrier();
      next = fetch(0u, tile + KEYS, base, last, local);
      keep_k(next, 0u, local);
      keep_v(next, 0u, local);
      for (var round = 1u; round < ROUNDS; round++) {
        keep_k(fetch(round, tile + KEYS, base, last, local), round, local);
        keep_v(fetch(round, tile + KEYS, base, last, local), round, local);
      }
      workgroupBarrier();
    }
  }

  for (var far = 1u; far < PER; far *= 2u) {
    sum += subgroupShuffleXor(sum, far);
  }
  let factor = select(1.0 / sum, p.blind, sum == 0.0);
  let part = ((kv_head * rows + row) * p.chunks + chunk) * (p.dim + 1u);
  if (ACROSS > 2u) {
    result_put(sg, 0u, a0);
    result_put(sg, 1u, a1);
    result_put(sg, 2u % ACROSS, a2);
    result_put(sg, 3u % ACROSS, a3);
    results_write(0u, seat, row < rows, from_q, part, factor);
    result_put(sg, 0u, a4);
    result_put(sg, 1u, a5);
    result_put(sg, 2u % ACROSS, a6);
    result_put(sg, 3u % ACROSS, a7);
    results_write(1u, seat, row < rows, from_q, part, factor);
  } else {
    result_put(sg, 0u, a0);
    result_put(sg, 1u, a1);
    results_write(0u, seat, row < rows, from_q, part, factor);
    result_put(sg, 0u, a2);
    result_put(sg, 1u, a3);
    results_write(1u, seat, row < rows, from_q, part, factor);
    if (BLOCKS > 4u) {
      result_put(sg, 0u, a4);
      result_put(sg, 1u, a5);
      results_write(2u, seat, row < rows, from_q, part, factor);
      result_put(sg, 0u, a6);
      result_put(sg, 1u, a7);
      results_write(3u, seat, row < rows, from_q, part, factor);
    }
  }
  if (row < rows && local % PER == 0u && p.chunks > 1u) {
    part_set(part + p.dim, vec4<f32>(most / LOG2E, sum, 0.0, 0.0));
  }
}

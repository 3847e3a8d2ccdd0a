// Attention of many rows (query, head): a workgroup takes ROWS of them that share a head of k and v
// and goes through the keys in tiles with a running maximum and sum; no score leaves it. Thread
// (x, y) of XS × YS has rows y, y + YS, …: first their scores with keys 4x … 4x + 3, then quads x, x + XS, … of
// their results. In between, each PER neighbours have a row, and a share of its keys.
// Where keys are split among workgroups (chunks > 1), what is written are parts for attn_merge.
// uses: grid attn_params
const WG = 128u;
const ROWS = 64u;
const KEYS = 64u;
const DEPTH = 8u; // quads of q and k in workgroup memory at a time
const QUADS = 1u; // of a result, a thread: heads of up to 4 · XS · QUADS elements
const XS = KEYS / 4u;
const YS = WG / XS;
const MINE = ROWS / YS;   // rows of a thread
const PER = WG / ROWS;    // threads of a row
const SHARE = XS / PER;   // quads of keys that each of them has
const STEP = WG / DEPTH;  // rows, or keys, that are brought at a time
const Q_LINE = ROWS + 1u; // one more against bank conflicts
const K_LINE = KEYS + 1u;
const K_AT = DEPTH * Q_LINE;
const LOWEST = -3.4028234e38;
@group(0) @binding(0) var<storage, read>       q: array<Quad>;
@group(0) @binding(1) var<storage, read>       k: array<Quad>;
@group(0) @binding(2) var<storage, read>       v: array<Quad>;
@group(0) @binding(3) var<storage, read>       bias: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<Quad>; // like q; or parts of f32, see attn_split
@group(0) @binding(5) var<uniform>             p: Params;
// q (DEPTH, ROWS) and k (DEPTH, KEYS), key 4x + j at j · XS + x; then scores and weights (ROWS, XS).
var<workgroup> store: array<vec4<f32>, max(ROWS * XS, DEPTH * (Q_LINE + K_LINE))>;
var<workgroup> shared_by: array<f32, WG>; // by thread: maxima; sums
var<workgroup> of_row: array<f32, ROWS>;  // what results so far fade by; maxima

fn row_at(kv_head: u32, r: u32) -> u32 {
  return r / p.heads_per_kv * p.q_token + (kv_head * p.heads_per_kv + r % p.heads_per_kv) * p.q_head;
}

// Where the mask's row for row r begins.
fn mask_at(kv_head: u32, r: u32) -> u32 {
  let head = kv_head * p.heads_per_kv + r % p.heads_per_kv;
  return head / p.mask_heads % p.mask_batches * p.mask.x + head % p.mask_heads * p.mask.y + r / p.heads_per_kv * p.mask.z;
}

fn bias_at(b: u32) -> f32 { return elem_get(bias[b / ELEMS], b % ELEMS); }

fn largest(s: vec4<f32>) -> f32 { return max(max(s.x, s.y), max(s.z, s.w)); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows = p.seq * p.heads_per_kv;
  let tiles = (rows + ROWS - 1u) / ROWS;
  let kv_heads = p.heads / p.heads_per_kv;
  let index = grid_group(group, groups);
  if (index >= tiles * kv_heads * p.chunks) {
    return;
  }
  let chunk = index % p.chunks;
  let kv_head = index / p.chunks % kv_heads;
  let row = (tiles - 1u - index / p.chunks / kv_heads) * ROWS; // the longest first
  let keys = min(min(p.keys, (chunk + 1u) * p.chunk), p.first + (min(row + ROWS, rows) - 1u) / p.heads_per_kv + 1u);
  let last = keys - 1u;
  let k_base = kv_head * p.k_head;
  let x = local % XS;
  let y = local / XS;
  let slab_d = local % DEPTH; // what the thread brings to workgroup memory
  let slab_r = local / DEPTH;
  var starts: array<u32, ROWS / STEP>;
  for (var i = 0u; i < ROWS / STEP; i++) {
    starts[i] = row_at(kv_head, min(row + slab_r + i * STEP, rows - 1u));
  }
  let shared_row = local / PER;
  let limit = min(keys, p.first + (row + shared_row) / p.heads_per_kv + 1u); // keys that it may look at
  let mask = mask_at(kv_head, min(row + shared_row, rows - 1u));
  var most = LOWEST; // of that row
  var sum = 0.0;     // over the thread's share
  var acc: array<array<vec4<f32>, QUADS>, MINE>;
  for (var tile = chunk * p.chunk; tile < keys; tile += KEYS) {
    var s = array<vec4<f32>, MINE>(); // naga zeroes a variable without a value once, not every turn
    for (var depth = 0u; depth < p.dim; depth += DEPTH) {
      let d = depth + slab_d;
      workgroupBarrier();
      for (var i = 0u; i < ROWS / STEP; i++) {
        var quad = vec4<f32>();
        if (d < p.dim) {
          quad = quad_get(q[starts[i] + d]);
        }
        store[slab_d * Q_LINE + slab_r + i * STEP] = quad;
      }
      for (var i = 0u; i < KEYS / STEP; i++) {
        let key = slab_r + i * STEP;
        var quad = vec4<f32>();
        if (d < p.dim) {
          quad = quad_get(k[k_base + min(tile + key, last) * p.k_token + d]);
        }
        store[K_AT + slab_d * K_LINE + key % 4u * XS + key / 4u] = quad;
      }
      workgroupBarrier();
      for (var i = 0u; i < DEPTH; i++) {
        let at = K_AT + i * K_LINE + x;
        let k0 = store[at];
        let k1 = store[at + XS];
        let k2 = store[at + 2u * XS];
        let k3 = store[at + 3u * XS];
        for (var r = 0u; r < MINE; r++) {
          let row_q = store[i * Q_LINE + r * YS + y];
          s[r] += vec4<f32>(dot(row_q, k0), dot(row_q, k1), dot(row_q, k2), dot(row_q, k3));
        }
      }
    }
    workgroupBarrier();
    for (var r = 0u; r < MINE; r++) {
      store[(r * YS + y) * XS + x] = s[r];
    }
    workgroupBarrier();
    var top = most;
    for (var i = 0u; i < SHARE; i++) {
      let column = local % PER * SHARE + (i + local) % SHARE; // turned against bank conflicts
      let key = tile + 4u * column + vec4<u32>(0u, 1u, 2u, 3u);
      var score = store[shared_row * XS + column] * p.scale;
      if (p.masked != 0u) {
        let at = mask + min(key, vec4<u32>(last)) * p.mask.w;
        score += vec4<f32>(bias_at(at.x), bias_at(at.y), bias_at(at.z), bias_at(at.w));
      }
      score = select(score, vec4<f32>(p.never), key >= vec4<u32>(limit));
      store[shared_row * XS + column] = score;
      top = max(top, largest(score));
    }
    shared_by[local] = top;
    workgroupBarrier();
    for (var i = 0u; i < PER; i++) {
      top = max(top, shared_by[shared_row * PER + i]);
    }
    let fade = exp(most - top);
    most = top;
    sum *= fade;
    for (var i = 0u; i < SHARE; i++) {
      let at = shared_row * XS + local % PER * SHARE + (i + local) % SHARE;
      let score = store[at];
      let weight = select(exp(score - top), vec4<f32>(), score < vec4<f32>(LOWEST));
      store[at] = weight;
      sum += dot(weight, vec4<f32>(1.0));
    }
    if (local % PER == 0u) {
      of_row[shared_row] = fade;
    }
    workgroupBarrier();
    for (var r = 0u; r < MINE; r++) {
      for (var n = 0u; n < QUADS; n++) {
        acc[r][n] *= of_row[r * YS + y];
      }
    }
    for (var i = 0u; i < min(XS, (keys - tile + 3u) / 4u); i++) {
      let at = k_base + min(tile + 4u * i + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last)) * p.k_token + x;
      for (var n = 0u; n < QUADS; n++) {
        if (x + XS * n < p.dim) {
          let value = mat4x4<f32>(quad_get(v[at.x + XS * n]), quad_get(v[at.y + XS * n]),
                                  quad_get(v[at.z + XS * n]), quad_get(v[at.w + XS * n]));
          for (var r = 0u; r < MINE; r++) {
            acc[r][n] += value * store[(r * YS + y) * XS + i];
          }
        }
      }
    }
  }
  workgroupBarrier();
  shared_by[local] = sum;
  if (local % PER == 0u) {
    of_row[shared_row] = most;
  }
  workgroupBarrier();
  for (var r = 0u; r < MINE; r++) {
    let mine = row + r * YS + y;
    if (mine >= rows) {
      continue;
    }
    var total = 0.0;
    for (var i = 0u; i < PER; i++) {
      total += shared_by[(r * YS + y) * PER + i];
    }
    let factor = select(1.0 / total, p.blind, total == 0.0);
    let part = ((kv_head * rows + mine) * p.chunks + chunk) * (p.dim + 1u);
    for (var n = 0u; n < QUADS; n++) {
      if (x + XS * n < p.dim && p.chunks == 1u) {
        out[row_at(kv_head, mine) + x + XS * n] = quad_put(acc[r][n] * factor);
      } else if (x + XS * n < p.dim) {
        part_set(part + x + XS * n, acc[r][n]);
      }
    }
    if (x == 0u && p.chunks > 1u) {
      part_set(part + p.dim, vec4<f32>(of_row[r * YS + y], total, 0.0, 0.0));
    }
  }
}

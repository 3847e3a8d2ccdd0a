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
var<workgroup> tile_v: array<vec4<f16>, KEYS * LINE>;
var<workgroup> scores: array<array<vec4<f32>, SIDE * S_LINE>, GROUPS>; // and results on their way
var<workgroup> weights: array<array<vec4<f16>, SIDE * P_LINE>, GROUPS>; // and q on its way
var<workgroup> fades: array<atomic<u32>, 4>; // the first: some row's results must fade

fn row_at(kv_head: u32, r: u32) -> u32 {
  return r / p.heads_per_kv * p.q_token + (kv_head * p.heads_per_kv + r % p.heads_per_kv) * p.q_head;
}

// Where the mask's row for row r begins.
fn mask_at(kv_head: u32, r: u32) -> u32 {
  let head = kv_head * p.heads_per_kv + r % p.heads_per_kv;
  return head / p.mask_heads * p.mask.x + head % p.mask_heads * p.mask.y + r / p.heads_per_kv * p.mask.z;
}

fn bias_at(b: u32) -> f32 { return elem_get(bias[b / ELEMS], b % ELEMS); }

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
  let last = keys - 1u;
  let base = kv_head * p.k_head;
  let sg = local / LANES;
  let lane_row = local % LANES / PER; // a thread's row of its subgroup's, and its first quad
  let lane_at = local % PER * SHARE;
  let row = first_row + sg * SIDE + lane_row;
  let from_q = row_at(kv_head, min(row, rows - 1u));
  let limit = min(keys, p.first + row / p.heads_per_kv + 1u); // keys that it may look at
  let mask = mask_at(kv_head, min(row, rows - 1u));

  var query: array<Left, BLOCKS>;
  for (var c = 0u; c < BLOCKS / ACROSS; c++) {
    for (var i = 0u; i < SHARE; i++) {
      let d = c * KEYS / 4u + lane_at + i;
      var quad = vec4<f32>();
      if (d < p.dim) {
        quad = quad_get(q[from_q + d]) * (p.scale * LOG2E);
      }
      weights[sg][lane_row * P_LINE + lane_at + i] = vec4<f16>(quad);
    }
    workgroupBarrier();
    for (var j = 0u; j < ACROSS; j++) {
      query[c * ACROSS + j] = subgroupMatrixLoad<Left, row_major>(&weights[sg], j * STEP, P_LINE);
    }
    workgroupBarrier();
  }

  var acc: array<Sums, BLOCKS>;
  var most = LOWEST; // of the row; weights are 2^(score − most)
  var sum = 0.0;     // over the thread's share
  for (var tile = chunk * p.chunk; tile < keys; tile += KEYS) {
    for (var i = local; i < KEYS * WIDTH / 4u; i += WG) {
      let key = i / (WIDTH / 4u);
      let d = i % (WIDTH / 4u);
      let at = base + min(tile + key, last) * p.k_token + d;
      var quad_k = vec4<f32>();
      var quad_v = vec4<f32>();
      if (d < p.dim) {
        quad_k = quad_get(k[at]);
        quad_v = quad_get(v[at]);
      }
      tile_k[key * LINE + d] = vec4<f16>(quad_k);
      tile_v[key * LINE + d] = vec4<f16>(quad_v);
    }
    if (local == 0u) {
      atomicStore(&fades[0], 0u);
    }
    workgroupBarrier();
    for (var b = 0u; b < ACROSS; b++) {
      var s = Sums();
      for (var d = 0u; d < BLOCKS; d++) {
        let block = subgroupMatrixLoad<Right, col_major>(&tile_k, b * SIDE * LINE + d * STEP, LINE);
        s = subgroupMatrixMultiplyAccumulate(query[d], block, s);
      }
      subgroupMatrixStore<row_major>(&scores[sg], b * STEP, s, S_LINE);
    }
    workgroupBarrier();
    var mine: array<vec4<f32>, SHARE>;
    var top = LOWEST;
    for (var i = 0u; i < SHARE; i++) {
      let key = tile + 4u * (lane_at + i) + vec4<u32>(0u, 1u, 2u, 3u);
      var s = scores[sg][lane_row * S_LINE + lane_at + i];
      if (p.masked != 0u) {
        let at = mask + min(key, vec4<u32>(last)) * p.mask.w;
        let bias = vec4<f32>(bias_at(at.x), bias_at(at.y), bias_at(at.z), bias_at(at.w));
        // The least number stays a number: a row of such keys alone is their mean.
        s += select(LOG2E * bias, max(LOG2E * bias, vec4<f32>(0.5 * LOWEST)), bias >= vec4<f32>(LOWEST));
      }
      s = select(s, vec4<f32>(p.never), key >= vec4<u32>(limit));
      mine[i] = s;
      top = max(top, max(max(s.x, s.y), max(s.z, s.w)));
    }
    for (var far = 1u; far < PER; far *= 2u) {
      top = max(top, subgroupShuffleXor(top, far));
    }
    var fade = 1.0;
    if (top > most + 8.0) {
      fade = exp2(most - top);
      most = top;
      sum *= fade;
      if (tile > chunk * p.chunk) {
        atomicStore(&fades[0], 1u);
      }
    }
    for (var i = 0u; i < SHARE; i++) {
      let w = select(exp2(mine[i] - most), vec4<f32>(), mine[i] < vec4<f32>(LOWEST));
      sum += dot(w, vec4<f32>(1.0));
      weights[sg][lane_row * P_LINE + lane_at + i] = vec4<f16>(w);
    }
    workgroupBarrier();
    if (workgroupUniformLoad(&fades[0]) != 0u) {
      for (var c = 0u; c < BLOCKS / ACROSS; c++) {
        for (var j = 0u; j < ACROSS; j++) {
          subgroupMatrixStore<row_major>(&scores[sg], j * STEP, acc[c * ACROSS + j], S_LINE);
        }
        workgroupBarrier();
        for (var i = 0u; i < SHARE; i++) {
          scores[sg][lane_row * S_LINE + lane_at + i] *= fade;
        }
        workgroupBarrier();
        for (var j = 0u; j < ACROSS; j++) {
          acc[c * ACROSS + j] = subgroupMatrixLoad<Sums, row_major>(&scores[sg], j * STEP, S_LINE);
        }
        workgroupBarrier();
      }
    }
    for (var b = 0u; b < ACROSS; b++) {
      let w = subgroupMatrixLoad<Left, row_major>(&weights[sg], b * STEP, P_LINE);
      for (var d = 0u; d < BLOCKS; d++) {
        let block = subgroupMatrixLoad<Right, row_major>(&tile_v, b * SIDE * LINE + d * STEP, LINE);
        acc[d] = subgroupMatrixMultiplyAccumulate(w, block, acc[d]);
      }
    }
    workgroupBarrier();
  }

  for (var far = 1u; far < PER; far *= 2u) {
    sum += subgroupShuffleXor(sum, far);
  }
  let factor = select(1.0 / sum, 0.0, sum == 0.0);
  let part = ((kv_head * rows + row) * p.chunks + chunk) * (p.dim + 1u);
  for (var c = 0u; c < BLOCKS / ACROSS; c++) {
    for (var j = 0u; j < ACROSS; j++) {
      subgroupMatrixStore<row_major>(&scores[sg], j * STEP, acc[c * ACROSS + j], S_LINE);
    }
    workgroupBarrier();
    for (var i = 0u; i < SHARE; i++) {
      let d = c * KEYS / 4u + lane_at + i;
      let value = scores[sg][lane_row * S_LINE + lane_at + i];
      if (row < rows && d < p.dim && p.chunks == 1u) {
        out[from_q + d] = quad_put(value * factor);
      } else if (row < rows && d < p.dim) {
        part_set(part + d, value);
      }
    }
    workgroupBarrier();
  }
  if (row < rows && local % PER == 0u && p.chunks > 1u) {
    part_set(part + p.dim, vec4<f32>(most / LOG2E, sum, 0.0, 0.0));
  }
}

// Attention of many queries: a workgroup takes 64 rows (query, head) that share a head of k and v
// and goes through the keys in tiles of 32 with a running maximum and sum; no score leaves it.
// Thread (x, y) of 8 × 16 has rows y, y + 16, y + 32, y + 48: first their scores with keys 4x … 4x + 3,
// then quads x, x + 8, … of their results.
// uses: grid
const WG = 128u;
const ROWS = 64u;
const KEYS = 32u;
const DEPTH = 4u; // quads of q and k in workgroup memory at a time
const QUADS = 2u; // of a result, a thread: heads of up to 32 · QUADS elements
const LOWEST = -3.4028234e38;
struct Params {
  seq: u32,     // queries of a head
  heads: u32,   // of q, all batches
  group: u32,   // heads of q that share a head of k and v
  dim: u32,     // of a head; quads
  q_token: u32, // strides of q and out; quads
  q_head: u32,
  k_token: u32, // strides of k and v; quads
  k_head: u32,
  keys: u32,
  first: u32, // query i may look at keys up to first + i
  head_major: u32,
  masked: u32,
  mask: vec4<u32>, // strides: batch, head, query, key; elements
  mask_heads: u32, // heads of one batch
  chunk: u32,      // keys of a workgroup, where keys are split
  chunks: u32,
  lanes: u32, // threads that share a key there
  scale: f32,
  never: f32, // −inf, which WGSL cannot write down
}
@group(0) @binding(0) var<storage, read>       q: array<Quad>;
@group(0) @binding(1) var<storage, read>       k: array<Quad>;
@group(0) @binding(2) var<storage, read>       v: array<Quad>;
@group(0) @binding(3) var<storage, read>       bias: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<Quad>;
@group(0) @binding(5) var<uniform>             p: Params;
var<workgroup> slab_q: array<vec4<f32>, 256>;  // (DEPTH, ROWS)
var<workgroup> slab_k: array<vec4<f32>, 128>;  // (DEPTH, KEYS): key 4x + j at 8j + x
var<workgroup> weights: array<vec4<f32>, 512>; // (ROWS, KEYS / 4), turned by the row against bank conflicts
var<workgroup> peaks: array<f32, 512>;         // (ROWS, 8): of a thread's four keys

fn row_at(kv_head: u32, r: u32) -> u32 {
  return r / p.group * p.q_token + (kv_head * p.group + r % p.group) * p.q_head;
}

fn masked_score(s: f32, kv_head: u32, r: u32, key: u32) -> f32 {
  let token = r / p.group;
  if (key >= p.keys || key > p.first + token) {
    return p.never;
  }
  if (p.masked == 0u) {
    return s;
  }
  let head = kv_head * p.group + r % p.group;
  let b = head / p.mask_heads * p.mask.x + head % p.mask_heads * p.mask.y + token * p.mask.z + key * p.mask.w;
  return s + elem_get(bias[b / ELEMS], b % ELEMS);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows = p.seq * p.group;
  let tiles = (rows + ROWS - 1u) / ROWS;
  let kv_heads = p.heads / p.group;
  let index = grid_group(group, groups);
  if (index >= tiles * kv_heads) {
    return;
  }
  let kv_head = index % kv_heads;
  let row = (tiles - 1u - index / kv_heads) * ROWS; // the longest first
  let keys = min(p.keys, p.first + (min(row + ROWS, rows) - 1u) / p.group + 1u);
  let k_base = kv_head * p.k_head;
  let x = local % 8u;
  let y = local / 8u;
  var most = vec4<f32>(LOWEST); // by the thread's row
  var sum = vec4<f32>();        // over the thread's own keys
  var acc: array<array<vec4<f32>, QUADS>, 4>;
  for (var tile = 0u; tile < keys; tile += KEYS) {
    var s = array<vec4<f32>, 4>(); // naga zeroes a variable without a value once, not every turn
    for (var depth = 0u; depth < p.dim; depth += DEPTH) {
      for (var i = local; i < ROWS * DEPTH; i += WG) {
        let d = depth + i % DEPTH;
        var quad = vec4<f32>();
        if (d < p.dim) {
          quad = quad_get(q[row_at(kv_head, min(row + i / DEPTH, rows - 1u)) + d]);
        }
        slab_q[i % DEPTH * ROWS + i / DEPTH] = quad;
      }
      let key = local / DEPTH;
      let d = depth + local % DEPTH;
      var quad = vec4<f32>();
      if (d < p.dim) {
        quad = quad_get(k[k_base + min(tile + key, keys - 1u) * p.k_token + d]);
      }
      slab_k[local % DEPTH * KEYS + key % 4u * 8u + key / 4u] = quad;
      workgroupBarrier();
      for (var i = 0u; i < DEPTH; i++) {
        let k0 = slab_k[i * KEYS + x];
        let k1 = slab_k[i * KEYS + 8u + x];
        let k2 = slab_k[i * KEYS + 16u + x];
        let k3 = slab_k[i * KEYS + 24u + x];
        for (var r = 0u; r < 4u; r++) {
          let a = slab_q[i * ROWS + r * 16u + y];
          s[r] += vec4<f32>(dot(a, k0), dot(a, k1), dot(a, k2), dot(a, k3));
        }
      }
      workgroupBarrier();
    }
    for (var r = 0u; r < 4u; r++) {
      for (var j = 0u; j < 4u; j++) {
        s[r][j] = masked_score(s[r][j] * p.scale, kv_head, row + r * 16u + y, tile + 4u * x + j);
      }
      peaks[(r * 16u + y) * 8u + x] = max(max(s[r].x, s[r].y), max(s[r].z, s[r].w));
    }
    workgroupBarrier();
    for (var r = 0u; r < 4u; r++) {
      var now = most[r];
      for (var i = 0u; i < 8u; i++) {
        now = max(now, peaks[(r * 16u + y) * 8u + i]);
      }
      let keep = exp(most[r] - now);
      let weight = select(exp(s[r] - now), vec4<f32>(), s[r] < vec4<f32>(LOWEST));
      most[r] = now;
      sum[r] = sum[r] * keep + weight.x + weight.y + weight.z + weight.w;
      weights[(r * 16u + y) * 8u + (x + y) % 8u] = weight;
      for (var n = 0u; n < QUADS; n++) {
        acc[r][n] *= keep;
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < 8u; i++) {
      let w0 = weights[y * 8u + (i + y) % 8u];
      let w1 = weights[(16u + y) * 8u + (i + y) % 8u];
      let w2 = weights[(32u + y) * 8u + (i + y) % 8u];
      let w3 = weights[(48u + y) * 8u + (i + y) % 8u];
      for (var j = 0u; j < 4u; j++) {
        let at = k_base + min(tile + 4u * i + j, keys - 1u) * p.k_token;
        for (var n = 0u; n < QUADS; n++) {
          if (x + 8u * n < p.dim) {
            let value = quad_get(v[at + x + 8u * n]);
            acc[0][n] += w0[j] * value;
            acc[1][n] += w1[j] * value;
            acc[2][n] += w2[j] * value;
            acc[3][n] += w3[j] * value;
          }
        }
      }
    }
  }
  for (var r = 0u; r < 4u; r++) {
    peaks[(r * 16u + y) * 8u + x] = sum[r];
  }
  workgroupBarrier();
  for (var r = 0u; r < 4u; r++) {
    let mine = row + r * 16u + y;
    if (mine >= rows) {
      continue;
    }
    var total = 0.0;
    for (var i = 0u; i < 8u; i++) {
      total += peaks[(r * 16u + y) * 8u + i];
    }
    let factor = select(1.0 / total, 0.0, total == 0.0);
    for (var n = 0u; n < QUADS; n++) {
      if (x + 8u * n < p.dim) {
        out[row_at(kv_head, mine) + x + 8u * n] = quad_put(acc[r][n] * factor);
      }
    }
  }
}

// Attention of many queries: a workgroup takes 64 rows (query, head) that share a head of k and v
// and goes through the keys in tiles of 32 with a running maximum and sum; no score leaves it.
// Thread (x, y) of 8 × 16 has rows y, y + 16, y + 32, y + 48: first their scores with keys 4x … 4x + 3,
// then quads x, x + 8, … of their results.
// uses: grid attn_params
const WG = 128u;
const ROWS = 64u;
const KEYS = 32u;
const DEPTH = 4u; // quads of q and k in workgroup memory at a time
const QUADS = 2u; // of a result, a thread: heads of up to 32 · QUADS elements
const LOWEST = -3.4028234e38;
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
  let tiles = (rows + ROWS - 1u) / ROWS;
  let kv_heads = p.heads / p.heads_per_kv;
  let index = grid_group(group, groups);
  if (index >= tiles * kv_heads) {
    return;
  }
  let kv_head = index % kv_heads;
  let row = (tiles - 1u - index / kv_heads) * ROWS; // the longest first
  let keys = min(p.keys, p.first + (min(row + ROWS, rows) - 1u) / p.heads_per_kv + 1u);
  let k_base = kv_head * p.k_head;
  let x = local % 8u;
  let y = local / 8u;
  let last = keys - 1u;
  var limits: vec4<u32>; // by the thread's row: keys that it may look at
  var masks: vec4<u32>;
  for (var r = 0u; r < 4u; r++) {
    let mine = row + r * 16u + y;
    limits[r] = min(p.keys, p.first + mine / p.heads_per_kv + 1u);
    masks[r] = mask_at(kv_head, min(mine, rows - 1u));
  }
  // What the thread brings to workgroup memory: a quad of two rows and of a key.
  let slab_d = local % DEPTH;
  let slab_r = local / DEPTH;
  let from0 = row_at(kv_head, min(row + slab_r, rows - 1u));
  let from1 = row_at(kv_head, min(row + slab_r + 32u, rows - 1u));
  var most = vec4<f32>(LOWEST); // by the thread's row
  var sum = vec4<f32>();        // over the thread's own keys
  var acc: array<array<vec4<f32>, QUADS>, 4>;
  for (var tile = 0u; tile < keys; tile += KEYS) {
    var s = array<vec4<f32>, 4>(); // naga zeroes a variable without a value once, not every turn
    let from_k = k_base + min(tile + slab_r, last) * p.k_token;
    for (var depth = 0u; depth < p.dim; depth += DEPTH) {
      let d = depth + slab_d;
      var a = vec4<f32>();
      var b = vec4<f32>();
      var c = vec4<f32>();
      if (d < p.dim) {
        a = quad_get(q[from0 + d]);
        b = quad_get(q[from1 + d]);
        c = quad_get(k[from_k + d]);
      }
      slab_q[slab_d * ROWS + slab_r] = a;
      slab_q[slab_d * ROWS + slab_r + 32u] = b;
      slab_k[slab_d * KEYS + slab_r % 4u * 8u + slab_r / 4u] = c;
      workgroupBarrier();
      for (var i = 0u; i < DEPTH; i++) {
        let k0 = slab_k[i * KEYS + x];
        let k1 = slab_k[i * KEYS + 8u + x];
        let k2 = slab_k[i * KEYS + 16u + x];
        let k3 = slab_k[i * KEYS + 24u + x];
        for (var r = 0u; r < 4u; r++) {
          let row_q = slab_q[i * ROWS + r * 16u + y];
          s[r] += vec4<f32>(dot(row_q, k0), dot(row_q, k1), dot(row_q, k2), dot(row_q, k3));
        }
      }
      workgroupBarrier();
    }
    let key = tile + 4u * x + vec4<u32>(0u, 1u, 2u, 3u);
    for (var r = 0u; r < 4u; r++) {
      s[r] *= p.scale;
      if (p.masked != 0u) {
        let at = masks[r] + min(key, vec4<u32>(last)) * p.mask.w;
        s[r] += vec4<f32>(bias_at(at.x), bias_at(at.y), bias_at(at.z), bias_at(at.w));
      }
      s[r] = select(s[r], vec4<f32>(p.never), key >= vec4<u32>(limits[r]));
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
      sum[r] = sum[r] * keep + dot(weight, vec4<f32>(1.0));
      weights[(r * 16u + y) * 8u + (x + y) % 8u] = weight;
      for (var n = 0u; n < QUADS; n++) {
        acc[r][n] *= keep;
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < 8u; i++) {
      let column = y * 8u + (i + y) % 8u;
      let w0 = weights[column];
      let w1 = weights[column + 128u];
      let w2 = weights[column + 256u];
      let w3 = weights[column + 384u];
      let at = k_base + min(tile + 4u * i + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last)) * p.k_token + x;
      for (var n = 0u; n < QUADS; n++) {
        if (x + 8u * n < p.dim) {
          let value = mat4x4<f32>(quad_get(v[at.x + 8u * n]), quad_get(v[at.y + 8u * n]),
                                  quad_get(v[at.z + 8u * n]), quad_get(v[at.w + 8u * n]));
          acc[0][n] += value * w0;
          acc[1][n] += value * w1;
          acc[2][n] += value * w2;
          acc[3][n] += value * w3;
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

// Attention of few queries over many keys, first half: a workgroup takes one head of k and v, four
// rows (query, head) that share it, and a chunk of keys; it writes the chunk's maximum, sum of
// weights and weighted values, and attn_merge joins the chunks.
// A key is read by `lanes` threads, four quads each; then a value row by 4 · lanes threads.
// uses: grid
alias Reduced = vec4<f32>; // by row
const WG = 256u;
const MOST = 128u; // keys of a chunk
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
@group(0) @binding(4) var<storage, read_write> parts: array<vec4<f32>>; // (kv heads, rows, chunks, dim)
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>; // (kv heads, rows, chunks): maximum, sum
@group(0) @binding(6) var<uniform>             p: Params;
var<workgroup> query: array<vec4<f32>, 256>;    // (4 rows, dim)
var<workgroup> weights: array<vec4<f32>, MOST>; // (keys): four rows
var<workgroup> sums: array<vec4<f32>, WG>;

// Row r of a head of k and v belongs to query r / group.
fn masked_score(s: f32, kv_head: u32, r: u32, key: u32) -> f32 {
  let token = r / p.group;
  if (key >= p.keys || key > p.first + token || token >= p.seq) {
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
  let sets = (rows + 3u) / 4u;
  let index = grid_group(group, groups);
  let chunk = index % p.chunks;
  let row = index / p.chunks % sets * 4u;
  let kv_head = index / p.chunks / sets;
  if (kv_head * p.group >= p.heads) {
    return;
  }
  for (var i = local; i < 4u * p.dim; i += WG) {
    let r = min(row + i / p.dim, rows - 1u);
    let at = r / p.group * p.q_token + (kv_head * p.group + r % p.group) * p.q_head;
    query[i] = quad_get(q[at + i % p.dim]);
  }
  workgroupBarrier();

  let start = chunk * p.chunk;
  let count = min(p.chunk, p.keys - start); // keys here
  let base = kv_head * p.k_head + start * p.k_token;
  let lane = local % p.lanes;
  for (var turn = 0u; turn < count; turn += WG / p.lanes) {
    let mine = turn + local / p.lanes;
    let at = base + min(mine, count - 1u) * p.k_token;
    var s = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
      let d = lane + i * p.lanes;
      if (d < p.dim) {
        let key = quad_get(k[at + d]);
        s += vec4<f32>(dot(key, query[d]), dot(key, query[p.dim + d]), dot(key, query[2u * p.dim + d]),
                       dot(key, query[3u * p.dim + d]));
      }
    }
    s = lanes_add(s, local, p.lanes) * p.scale;
    if (lane == 0u && mine < count) {
      for (var r = 0u; r < 4u; r++) {
        s[r] = masked_score(s[r], kv_head, row + r, start + mine);
      }
      weights[mine] = s;
    }
  }
  workgroupBarrier();

  var s = vec4<f32>(p.never);
  if (local < count) {
    s = weights[local];
  }
  let most = max(vec4<f32>(LOWEST), group_max(s, local));
  let weight = select(exp(s - most), vec4<f32>(), s < vec4<f32>(LOWEST));
  let sum = group_add(weight, local);
  if (local < count) {
    weights[local] = weight;
  }
  workgroupBarrier();

  let wide = 4u * p.lanes; // threads of a value row
  let d = local % wide;
  var acc: array<vec4<f32>, 4>;
  if (d < p.dim) {
    for (var i = local / wide; i < count; i += WG / wide) {
      let value = quad_get(v[base + i * p.k_token + d]);
      let w = weights[i];
      acc[0] += w.x * value;
      acc[1] += w.y * value;
      acc[2] += w.z * value;
      acc[3] += w.w * value;
    }
  }
  for (var r = 0u; r < 4u; r++) {
    sums[local] = acc[r];
    workgroupBarrier();
    if (local < p.dim && row + r < rows) {
      var total = sums[local];
      for (var i = 1u; i < WG / wide; i++) {
        total += sums[local + i * wide];
      }
      let to = (kv_head * rows + row + r) * p.chunks + chunk;
      parts[to * p.dim + local] = total;
      if (local == 0u) {
        stats[to] = vec2<f32>(most[r], sum[r]);
      }
    }
    workgroupBarrier();
  }
}

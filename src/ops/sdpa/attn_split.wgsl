// Attention of few queries over many keys, first half: a workgroup takes one head of k and v, four
// rows (query, head) that share it, and a chunk of keys; it writes the chunk's maximum, sum of
// weights and weighted values, and attn_merge joins the chunks.
// uses: grid attn_params
alias Reduced = vec4<f32>; // by row
const WG = 256u;
const MOST = 128u; // keys of a chunk
const LANES = 4u;  // see attn_chunk_wide
const QUADS = 0u;
@group(0) @binding(0) var<storage, read>       q: array<Quad>;
@group(0) @binding(1) var<storage, read>       k: array<Quad>;
@group(0) @binding(2) var<storage, read>       v: array<Quad>;
@group(0) @binding(3) var<storage, read>       bias: array<u32>;
@group(0) @binding(4) var<storage, read_write> parts: array<vec4<f32>>; // (kv heads, rows, chunks, dim + 1): values; maximum and sum
@group(0) @binding(5) var<uniform>             p: Params;

var<private> kv_head: u32;
var<private> row: u32;   // the first of four
var<private> start: u32; // the chunk's first key
var<private> base: u32;  // where its row begins

fn key_cached(i: u32, d: u32) -> vec4<f32> { return quad_get(k[base + i * p.k_token + d]); }
fn value_cached(i: u32, d: u32) -> vec4<f32> { return quad_get(v[base + i * p.k_token + d]); }
fn key_now(cached: vec4<f32>, i: u32, d: u32) -> vec4<f32> { return cached; }
fn value_now(cached: vec4<f32>, i: u32, d: u32) -> vec4<f32> { return cached; }

// Row r of a head of k and v belongs to query r / group.
fn masked(s: f32, r: u32, i: u32) -> f32 {
  let token = (row + r) / p.heads_per_kv;
  let key = start + i;
  if (key >= p.keys || key > p.first + token || token >= p.seq) {
    return p.never;
  }
  if (p.masked == 0u) {
    return s;
  }
  let head = kv_head * p.heads_per_kv + (row + r) % p.heads_per_kv;
  let b = head / p.mask_heads % p.mask_batches * p.mask.x + head % p.mask_heads * p.mask.y + token * p.mask.z + key * p.mask.w;
  return s + elem_get(bias[b / ELEMS], b % ELEMS);
}

fn put_part(r: u32, d: u32, total: vec4<f32>, most: f32, sum: f32) {
  if (row + r >= p.seq * p.heads_per_kv) {
    return;
  }
  let at = ((kv_head * p.seq * p.heads_per_kv + row + r) * p.chunks + start / p.chunk) * (p.dim + 1u);
  parts[at + d] = total;
  if (d == 0u) {
    parts[at + p.dim] = vec4<f32>(most, sum, 0.0, 0.0);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows = p.seq * p.heads_per_kv;
  let sets = (rows + HEADS - 1u) / HEADS;
  let index = grid_group(group, groups);
  row = index / p.chunks % sets * HEADS;
  kv_head = index / p.chunks / sets;
  start = index % p.chunks * p.chunk;
  if (index / p.chunks / sets * p.heads_per_kv >= p.heads) {
    return;
  }
  base = kv_head * p.k_head + start * p.k_token;
  let count = min(p.chunk, p.keys - index % p.chunks * p.chunk);
  let early = attend_early(0u, count, local);
  for (var i = local; i < HEADS * p.dim; i += WG) {
    let r = min(row + i / p.dim, rows - 1u);
    let at = r / p.heads_per_kv * p.q_token + (kv_head * p.heads_per_kv + r % p.heads_per_kv) * p.q_head;
    query[i] = quad_get(q[at + i % p.dim]);
  }
  attend(count, local, early);
}

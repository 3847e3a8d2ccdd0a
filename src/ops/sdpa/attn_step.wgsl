// Attention of one new token: turns its queries and its key by their position's angles, appends key
// and value to the caches, and attends. A workgroup takes one head of k and v, up to four heads of q
// that share it, and a chunk of keys, as in attn_split; the one with the last chunk appends. The new key
// is never read from the cache here. FINAL: there is one chunk, and `parts` is the result.
// Pairs: (2i, 2i + 1) turn, a table row has an angle per pair. Otherwise: (i, i + rotary / 2), a
// table row has a column per element; elements from `rotary` on pass through.
// uses: grid
alias Reduced = vec4<f32>; // by row
const FINAL = false;
const WG = 256u;
const MOST = 128u; // keys of a chunk
const LANES = 4u;  // see attn_chunk_wide
const QUADS = 0u;
const PAIRS = 2u; // 0, 1: as p.pairs, when it is known
struct Params {
  heads: u32,  // of q
  heads_per_kv: u32, // heads of q that share a head of k and v
  dim: u32,    // of a head; quads
  keys: u32,   // the new one included
  chunk: u32,  // keys of a workgroup
  chunks: u32,
  lanes: u32,  // threads that share a key
  token: u32,  // quads of all heads of k
  pairs: u32,
  rotary: u32, // leading elements of a head that turn
  at: u32,     // first element of the position's row in the tables
  scale: f32,
  never: f32,  // −inf, which WGSL cannot write down
}
@group(0) @binding(0) var<storage, read>       q: array<Quad>;     // (heads, dim)
@group(0) @binding(1) var<storage, read>       k_new: array<Quad>; // (kv heads, dim)
@group(0) @binding(2) var<storage, read>       v_new: array<Quad>;
@group(0) @binding(3) var<storage, read>       cosine: array<u32>;
@group(0) @binding(4) var<storage, read>       sine: array<u32>;
@group(0) @binding(5) var<storage, read_write> k: array<Quad>;     // (tokens, kv heads, dim)
@group(0) @binding(6) var<storage, read_write> v: array<Quad>;
@group(0) @binding(7) var<storage, read_write> parts: array<Part>; // as in attn_split, or (heads, dim)
@group(0) @binding(8) var<uniform>             p: Params;
var<workgroup> fresh_key: array<vec4<f32>, 64>; // (dim)
var<workgroup> fresh_value: array<vec4<f32>, 64>;

var<private> kv_head: u32;
var<private> row: u32;   // the first of its heads
var<private> start: u32; // the chunk's first key
var<private> base: u32;  // where its row begins

fn is_pairs() -> bool { return select(PAIRS == 1u, p.pairs != 0u, PAIRS == 2u); }

fn angle(of_sine: bool, column: u32) -> f32 {
  let at = p.at + column;
  if (of_sine) {
    return elem_get(sine[at / ELEMS], at % ELEMS);
  }
  return elem_get(cosine[at / ELEMS], at % ELEMS);
}

// The quad whose elements turn with those of quad d.
fn mate(d: u32) -> u32 {
  let half = p.rotary / 8u;
  if (is_pairs() || d >= 2u * half) {
    return d;
  }
  return select(d - half, d + half, d < half);
}

fn turned(own: vec4<f32>, other: vec4<f32>, d: u32) -> vec4<f32> {
  if (is_pairs()) {
    let c = vec2<f32>(angle(false, 2u * d), angle(false, 2u * d + 1u));
    let s = vec2<f32>(angle(true, 2u * d), angle(true, 2u * d + 1u));
    return own * c.xxyy + vec4<f32>(-own.y, own.x, -own.w, own.z) * s.xxyy;
  }
  if (4u * d >= p.rotary) {
    return own;
  }
  var c = vec4<f32>();
  var s = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    c[i] = angle(false, 4u * d + i);
    s[i] = angle(true, 4u * d + i);
  }
  return own * c + select(other, -other, 8u * d < p.rotary) * s;
}

fn key_cached(i: u32, d: u32) -> vec4<f32> { return quad_get(k[base + i * p.token + d]); }
fn value_cached(i: u32, d: u32) -> vec4<f32> { return quad_get(v[base + i * p.token + d]); }
fn key_now(cached: vec4<f32>, i: u32, d: u32) -> vec4<f32> {
  return select(cached, fresh_key[d], start + i == p.keys - 1u);
}
fn value_now(cached: vec4<f32>, i: u32, d: u32) -> vec4<f32> {
  return select(cached, fresh_value[d], start + i == p.keys - 1u);
}
fn masked(s: f32, r: u32, i: u32) -> f32 { return s; }

fn put_part(r: u32, d: u32, total: vec4<f32>, most: f32, sum: f32) {
  if (row + r >= p.heads_per_kv) {
    return;
  }
  let head = kv_head * p.heads_per_kv + row + r;
  if (FINAL) {
    parts[head * dim() + d] = part_put(select(total / sum, vec4<f32>(), sum == 0.0));
    return;
  }
  let at = (head * p.chunks + start / p.chunk) * (dim() + 1u);
  parts[at + d] = part_put(total);
  if (d == 0u) {
    parts[at + dim()] = part_put(vec4<f32>(most, sum, 0.0, 0.0));
  }
}

// Quad i of the queries, or of the new key behind them.
fn turn(i: u32) {
  let d = i % dim();
  let other = mate(d);
  let own_key = i >= HEADS * dim();
  let at = (kv_head * p.heads_per_kv + min(row + i / dim(), p.heads_per_kv - 1u)) * dim();
  let key_at = kv_head * dim();
  var x = q[at + d];
  var y = q[at + other];
  if (own_key) {
    x = k_new[key_at + d];
    y = k_new[key_at + other];
  }
  let value = v_new[key_at + d];
  let result = turned(quad_get(x), quad_get(y), d);
  if (!own_key) {
    query[i] = result;
    return;
  }
  let key = quad_put(result);
  fresh_key[d] = quad_get(key);
  fresh_value[d] = quad_get(value);
  if (row == 0u) {
    k[(p.keys - 1u) * p.token + key_at + d] = key;
    v[(p.keys - 1u) * p.token + key_at + d] = value;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let sets = (p.heads_per_kv + HEADS - 1u) / HEADS;
  let index = grid_group(group, groups);
  let chunk = index % p.chunks;
  row = index / p.chunks % sets * HEADS;
  kv_head = index / p.chunks / sets;
  start = chunk * p.chunk;
  if (index / p.chunks / sets * p.heads_per_kv >= p.heads) {
    return;
  }
  base = start * p.token + kv_head * dim();
  let count = min(p.chunk, p.keys - chunk * p.chunk);
  let early = attend_early(0u, count, local);
  let last = chunk == p.chunks - 1u;
  if (QUADS != 0u && (HEADS + 1u) * QUADS <= WG) {
    if (local < select(HEADS, HEADS + 1u, last) * QUADS) {
      turn(local);
    }
  } else {
    for (var i = local; i < select(HEADS, HEADS + 1u, last) * dim(); i += WG) {
      turn(i);
    }
  }
  attend(count, local, early);
}

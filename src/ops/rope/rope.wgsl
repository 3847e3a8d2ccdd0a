// Rotary embedding of queries and keys: each pair (a, b) of a head turns by its position's angle,
// a' = a·cos − b·sin, b' = b·cos + a·sin.  One thread per output word, the queries' words first.
// PAIRS: (2i, 2i + 1), a table row has an angle per pair.  Otherwise: (i, i + rotary / 2), a table
// row has a column per element; elements from `rotary` on pass through.
// uses: grid
const PAIRS = false;
const WG = 64u;
struct Params {
  n_q: u32, // elements
  n_k: u32,
  heads_q: u32,
  heads_k: u32,
  inner_q: u32, // rows of one token that follow each other: all heads, or 1 if heads come first
  inner_k: u32,
  dim: u32,    // of a head
  rotary: u32, // leading elements of a head that turn
  seq: u32,    // tokens, times the heads if each has table rows of its own
  start: u32,  // table row of the first token
  width: u32,  // of a table row
  batch: u32,  // table rows from one batch to the next; 0: all have the same
}
@group(0) @binding(0) var<storage, read>       xq: array<u32>;    // (batch, seq, heads_q, dim) or (batch, heads_q, seq, dim)
@group(0) @binding(1) var<storage, read>       xk: array<u32>;    // likewise
@group(0) @binding(2) var<storage, read>       cosine: array<u32>; // (batch or 1, positions, width) or (seq, heads, width)
@group(0) @binding(3) var<storage, read>       sine: array<u32>;   // the same
@group(0) @binding(4) var<storage, read_write> yq: array<u32>;
@group(0) @binding(5) var<storage, read_write> yk: array<u32>;
@group(0) @binding(6) var<uniform>             p: Params;

fn element(of_k: bool, e: u32) -> f32 {
  if (of_k) {
    return elem_get(xk[e / ELEMS], e % ELEMS);
  }
  return elem_get(xq[e / ELEMS], e % ELEMS);
}

fn one(of_k: bool, e: u32) -> f32 {
  let d = e % p.dim;
  let x = element(of_k, e);
  if (d >= p.rotary) {
    return x;
  }
  let row = e / p.dim;
  let token = row / select(p.inner_q, p.inner_k, of_k) % p.seq;
  let batch = row / (select(p.heads_q, p.heads_k, of_k) * p.seq);
  var apart = p.rotary / 2u;
  var column = d;
  var first = d < apart;
  if (PAIRS) {
    apart = 1u;
    column = d / 2u;
    first = d % 2u == 0u;
  }
  let at = (p.start + token + batch * p.batch) * p.width + column;
  let c = elem_get(cosine[at / ELEMS], at % ELEMS);
  let s = elem_get(sine[at / ELEMS], at % ELEMS);
  let other = element(of_k, select(e - apart, e + apart, first));
  return x * c + select(other, -other, first) * s;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  var word = grid_group(group, groups) * WG + local;
  let words_q = (p.n_q + ELEMS - 1u) / ELEMS;
  let of_k = word >= words_q;
  let n = select(p.n_q, p.n_k, of_k);
  word -= select(0u, words_q, of_k);
  if (word * ELEMS >= n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < n; lane++) {
    packed = elem_put(packed, lane, one(of_k, word * ELEMS + lane));
  }
  if (of_k) {
    yk[word] = packed;
  } else {
    yq[word] = packed;
  }
}

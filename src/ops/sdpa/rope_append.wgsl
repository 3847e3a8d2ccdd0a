// Several tokens: queries are turned (see rope), keys are turned into their cache, values are copied to
// theirs. One thread per quad, the queries' first.
// PAIRS: elements 2i and 2i + 1 turn together, a table row has an angle per pair. Otherwise: i and
// i + rotary / 2, a table row has a column per element, and elements from `rotary` on pass through.
// uses: grid
const PAIRS = false;
const WG = 64u;
struct Params {
  n_q: u32, // quads of the queries
  n_k: u32, // of the keys, and of the values
  heads_q: u32,
  heads_k: u32,
  dim: u32,    // quads of a head
  rotary: u32, // quads of a head that turn; a multiple of two
  width: u32,  // elements of a table row
  start: u32,  // table row of the first token
  to: u32,     // quads of the caches in front of the new ones
}
@group(0) @binding(0) var<storage, read>       xq: array<Quad>;    // (seq, heads_q, dim)
@group(0) @binding(1) var<storage, read>       xk: array<Quad>;    // (seq, heads_k, dim)
@group(0) @binding(2) var<storage, read>       xv: array<Quad>;    // the same
@group(0) @binding(3) var<storage, read>       cosine: array<u32>; // (positions, width)
@group(0) @binding(4) var<storage, read>       sine: array<u32>;   // the same
@group(0) @binding(5) var<storage, read_write> yq: array<Quad>;
@group(0) @binding(6) var<storage, read_write> k_cache: array<Quad>;
@group(0) @binding(7) var<storage, read_write> v_cache: array<Quad>;
@group(0) @binding(8) var<uniform>             p: Params;

fn cosine_at(e: u32) -> f32 { return elem_get(cosine[e / ELEMS], e % ELEMS); }
fn sine_at(e: u32) -> f32 { return elem_get(sine[e / ELEMS], e % ELEMS); }
fn quad(of_k: bool, i: u32) -> vec4<f32> {
  if (of_k) {
    return quad_get(xk[i]);
  }
  return quad_get(xq[i]);
}

fn turned(of_k: bool, i: u32) -> vec4<f32> {
  let d = i % p.dim;
  let x = quad(of_k, i);
  if (d >= p.rotary) {
    return x;
  }
  let row = (p.start + i / p.dim / select(p.heads_q, p.heads_k, of_k)) * p.width;
  if (PAIRS) {
    let at = row + 2u * d;
    let c = vec2<f32>(cosine_at(at), cosine_at(at + 1u)).xxyy;
    let s = vec2<f32>(sine_at(at), sine_at(at + 1u)).xxyy;
    return x * c + vec4<f32>(-x.y, x.x, -x.w, x.z) * s;
  }
  let at = row + 4u * d;
  let c = vec4<f32>(cosine_at(at), cosine_at(at + 1u), cosine_at(at + 2u), cosine_at(at + 3u));
  let s = vec4<f32>(sine_at(at), sine_at(at + 1u), sine_at(at + 2u), sine_at(at + 3u));
  let first = d < p.rotary / 2u;
  let other = quad(of_k, select(i - p.rotary / 2u, i + p.rotary / 2u, first));
  return x * c + select(other, -other, first) * s;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i < p.n_q) {
    yq[i] = quad_put(turned(false, i));
  } else if (i < p.n_q + p.n_k) {
    k_cache[p.to + i - p.n_q] = quad_put(turned(true, i - p.n_q));
  } else if (i < p.n_q + 2u * p.n_k) {
    v_cache[p.to + i - p.n_q - p.n_k] = xv[i - p.n_q - p.n_k];
  }
}

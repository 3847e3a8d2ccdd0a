// y[t, d] = (code[row, d] − zero) · scale[row, d / group], row = index[t], as in embedding.
// uses: grid either
override WG: u32 = 64u;
const BITS = 4u;        // of a code: 2, 4 or 8
const EVEN_HIGH = 0u;   // 1: of two nibbles, the even d is the high one
const SIGNED = 0u;      // 1: codes of 8 bits are two's complement
struct Params {
  n: u32,      // elements of y
  d: u32,
  first: u32,
  rows: u32,
  vocab: u32,
  stride: u32, // bytes of a row of codes
  group: u32,
  groups: u32, // scales of a row
  half: u32,   // scales of 2 bytes
  zeros: u32,  // 0: none, else 1 + `half`
}
@group(0) @binding(0) var<storage, read>       table: array<u32>;   // (rows, stride) bytes
@group(0) @binding(1) var<storage, read>       scales: array<u32>;  // (rows, groups)
@group(0) @binding(2) var<storage, read>       zeros: array<u32>;   // (rows, groups)
@group(0) @binding(3) var<storage, read>       indices: array<u32>; // (tokens)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;       // (tokens, d)
@group(0) @binding(5) var<uniform>             p: Params;

fn code(row: u32, d: u32) -> f32 {
  let byte = row * p.stride + d * BITS / 8u;
  let word = table[byte / 4u] >> (8u * (byte % 4u));
  if (BITS == 4u) {
    return f32((word >> (4u * ((d ^ EVEN_HIGH) & 1u))) & 15u) - 8.0;
  }
  if (BITS == 2u) {
    return f32((word >> (2u * (d % 4u))) & 3u) - 2.0;
  }
  if (SIGNED == 1u) {
    return f32(extractBits(bitcast<i32>(word), 0u, 8u));
  }
  return f32(word & 255u);
}

fn one(row: u32, d: u32) -> f32 {
  let i = row * p.groups + d / p.group;
  var v = code(row, d);
  if (p.zeros != 0u) {
    v -= either_get(zeros[either_word(i, p.zeros - 1u)], i, p.zeros - 1u);
  }
  return v * either_get(scales[either_word(i, p.half)], i, p.half);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = y[word];
  var mine = false;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.n; lane++) {
    let at = word * ELEMS + lane;
    let index = indices[at / p.d];
    let row = index - p.first; // below p.first it wraps, as negative indices do
    if (row < p.rows) {
      packed = elem_put(packed, lane, one(row, at % p.d));
      mine = true;
    } else if (index >= p.vocab && p.first == 0u) {
      packed = elem_put(packed, lane, 0.0);
      mine = true;
    }
  }
  if (mine) {
    y[word] = packed;
  }
}

// Rotary embedding with one table: pairs (2i, 2i + 1) of the last dim turn by the angle whose cosine
// and sine are elements 2i and 2i + 1 of the table, which repeats over the batch.
// One thread per output word.
// uses: grid
const WG = 64u;
struct Params {
  n: u32,     // elements of x
  table: u32, // elements of the table
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;     // (batch, n, c)
@group(0) @binding(1) var<storage, read>       freqs: array<u32>; // (n, c)
@group(0) @binding(2) var<storage, read_write> y: array<u32>;     // (batch, n, c)
@group(0) @binding(3) var<uniform>             p: Params;

fn one(e: u32) -> f32 {
  let even = e - e % 2u;
  let a = elem_get(x[even / ELEMS], 0u);
  let b = elem_get(x[(even + 1u) / ELEMS], ELEMS - 1u);
  let at = even % p.table;
  let c = elem_get(freqs[at / ELEMS], 0u);
  let s = elem_get(freqs[(at + 1u) / ELEMS], ELEMS - 1u);
  return select(a * s + b * c, a * c - b * s, e == even);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    packed = elem_put(packed, lane, one(word * ELEMS + lane));
  }
  y[word] = packed;
}

// y[t, d] = table[index[t], d], 0 for an index outside the table.  One thread per word of y.
// A dispatch sees rows [first, first + rows) of the table and writes the tokens of these only; the
// first one also those outside. Words that two tokens share keep the other's half.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32,     // elements of y
  d: u32,
  first: u32,
  rows: u32,
  vocab: u32,
}
@group(0) @binding(0) var<storage, read>       table: array<u32>;   // (rows, d)
@group(0) @binding(1) var<storage, read>       indices: array<u32>; // (tokens)
@group(0) @binding(2) var<storage, read_write> y: array<u32>;       // (tokens, d)
@group(0) @binding(3) var<uniform>             p: Params;

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
      let i = row * p.d + at % p.d;
      packed = elem_put(packed, lane, elem_get(table[i / ELEMS], i % ELEMS));
      mine = true;
    } else if (index >= p.vocab && p.first == 0u) {
      packed = elem_put(packed, lane, Elem());
      mine = true;
    }
  }
  if (mine) {
    y[word] = packed;
  }
}

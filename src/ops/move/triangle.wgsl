// y[…, i, j] = x[…, i, j] where j - i <= diagonal (LOWER) or j - i >= diagonal, else 0.
// One thread per word of y (ELEMS elements of BITS bits).
// uses: grid
override WG: u32 = 64u;
const BITS = 32u;
const LOWER = true;
struct Params {
  n: u32, // elements
  rows: u32,
  cols: u32,
  diagonal: i32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (…, rows, cols)
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = x[word];
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = word * ELEMS + lane;
    let right = i32(e % p.cols) - i32(e / p.cols % p.rows);
    if (select(right >= p.diagonal, right <= p.diagonal, LOWER)) {
      continue;
    }
    packed = insertBits(packed, 0u, lane * BITS, BITS);
  }
  y[word] = packed;
}

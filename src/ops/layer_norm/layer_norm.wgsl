// y = (x - mean) rstd w + b over the last `cols` elements, rstd = 1 / sqrt(variance + eps); mean and
// rstd are results too.  A workgroup does as many rows as a word has elements, so that no word
// belongs to two workgroups: together they are `cols` whole words.
// uses: grid group_tree row_moments elem_pair
alias Reduced = vec2<f32>; // by row of the workgroup
const WG = 64u;
struct Params {
  rows: u32,
  cols: u32,
  eps: f32,
  affine: u32, // bit 0: w is there, bit 1: b
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;    // (rows, cols)
@group(0) @binding(1) var<storage, read>       w: array<u32>;    // (cols)
@group(0) @binding(2) var<storage, read>       b: array<u32>;    // (cols)
@group(0) @binding(3) var<storage, read_write> y: array<u32>;    // (rows, cols)
@group(0) @binding(4) var<storage, read_write> mean: array<u32>; // (rows)
@group(0) @binding(5) var<storage, read_write> rstd: array<u32>; // (rows)
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = grid_group(group, groups) * ELEMS;
  if (first >= p.rows) {
    return;
  }
  let count = min(ELEMS, p.rows - first) * p.cols; // elements
  let at = first / ELEMS * p.cols;                 // words
  let rows = row_moments(at, count, local);
  for (var i = local; i * ELEMS < count; i += WG) {
    var packed = 0u;
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let e = i * ELEMS + lane;
      let c = e % p.cols;
      var v = (elem_get(x[at + i], lane) - rows.middle[e / p.cols]) * rows.factor[e / p.cols];
      if ((p.affine & 1u) != 0u) {
        v *= elem_get(w[c / ELEMS], c % ELEMS);
      }
      if ((p.affine & 2u) != 0u) {
        v += elem_get(b[c / ELEMS], c % ELEMS);
      }
      packed = elem_put(packed, lane, v);
    }
    y[at + i] = packed;
  }
  if (local == 0u) {
    mean[first / ELEMS] = pair(rows.middle);
    rstd[first / ELEMS] = pair(rows.factor);
  }
}

// y = (x - mean) rstd w + b over each row of x, rstd = 1 / sqrt(variance + eps); mean and rstd are
// results too.  A workgroup does as many rows as a word has elements, so that no word belongs to two
// workgroups: together they are `cols` whole words.
// uses: grid group_tree row_moments elem_pair group_norm_params group_norm_affine
alias Reduced = vec2<f32>; // by row of the workgroup
const WG = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;    // (rows, cols)
@group(0) @binding(1) var<storage, read>       w: array<u32>;    // (groups * depth)
@group(0) @binding(2) var<storage, read>       b: array<u32>;    // (groups * depth)
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
      let row = (i * ELEMS + lane) / p.cols;
      let c = channel_of(first + row, (i * ELEMS + lane) % p.cols);
      let v = (elem_get(x[at + i], lane) - rows.middle[row]) * rows.factor[row];
      packed = elem_put(packed, lane, scaled(v, c));
    }
    y[at + i] = packed;
  }
  if (local == 0u) {
    mean[(p.first + first) / ELEMS] = pair(rows.middle);
    rstd[(p.first + first) / ELEMS] = pair(rows.factor);
  }
}

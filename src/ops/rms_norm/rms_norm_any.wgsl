// rms_norm for rows of any length. A workgroup does as many rows as a word has elements, so that
// no word belongs to two workgroups: together they are `cols` whole words.
// uses: grid rms_norm_params
alias Reduced = vec2<f32>; // by row of the workgroup
const WG = 32u;
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (rows, cols)
@group(0) @binding(1) var<storage, read>       w: array<u32>; // (cols)
@group(0) @binding(2) var<storage, read_write> y: array<u32>; // (rows, cols)
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let cols = u32(p.cols);
  let first = grid_group(group, groups) * ELEMS;
  if (first >= p.rows) {
    return;
  }
  let count = min(ELEMS, p.rows - first) * cols; // elements
  let at = first / ELEMS * cols;                 // words
  var sum = vec2<f32>();
  for (var i = local; i * ELEMS < count; i += WG) {
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let v = elem_get(x[at + i], lane);
      sum[(i * ELEMS + lane) / cols] += v * v;
    }
  }
  let factor = inverseSqrt(group_add(sum, local) / p.cols + p.eps);
  for (var i = local; i * ELEMS < count; i += WG) {
    var packed = 0u;
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let e = i * ELEMS + lane;
      let weight = elem_get(w[e % cols / ELEMS], e % cols % ELEMS);
      packed = elem_put(packed, lane, elem_get(x[at + i], lane) * factor[e / cols] * weight);
    }
    y[at + i] = packed;
  }
}

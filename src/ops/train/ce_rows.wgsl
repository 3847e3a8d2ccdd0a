// Cross entropy of each row of logits with its label: losses = (ln Σ e^x - x[label]) / n_valid, and its
// gradient dx = (softmax(x) - onehot(label)) / n_valid.  A row with a negative label has neither.
// A workgroup does as many rows as a word has elements, so that no word belongs to two workgroups:
// together they are `cols` whole words.
// uses: grid group_tree
alias Reduced = vec2<f32>; // by row of the workgroup
const WG = 256u;
struct Params {
  rows: u32, // of this dispatch
  cols: u32,
  first: u32, // row of the whole tensor that x and dx begin with, a multiple of ELEMS
  scale: f32, // 1 / n_valid
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (rows, cols)
@group(0) @binding(1) var<storage, read>       labels: array<i32>; // by row of the whole tensor
@group(0) @binding(2) var<storage, read_write> losses: array<f32>; // by row of the whole tensor
@group(0) @binding(3) var<storage, read_write> dx: array<u32>;     // (rows, cols)
@group(0) @binding(4) var<uniform>             p: Params;

var<private> lowest: u32 = 0xff800000u; // compilers refuse infinities that they can see
var<private> not_a_number: u32 = 0x7fc00000u;

fn label_of(row: u32) -> i32 { return labels[p.first + min(row, p.rows - 1u)]; }

fn loss(row: u32, most: f32, sum: f32) -> f32 {
  let label = label_of(row);
  if (label < 0) {
    return 0.0;
  }
  if (u32(label) >= p.cols) {
    return bitcast<f32>(not_a_number);
  }
  let e = row * p.cols + u32(label);
  return (most - elem_get(x[e / ELEMS], e % ELEMS) + log(sum)) * p.scale;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = grid_group(group, groups) * ELEMS;
  if (first >= p.rows) {
    return;
  }
  let count = min(ELEMS, p.rows - first) * p.cols; // elements
  let at = first / ELEMS * p.cols;                 // words
  var most = vec2<f32>(bitcast<f32>(lowest));
  for (var i = local; i * ELEMS < count; i += WG) {
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let row = (i * ELEMS + lane) / p.cols;
      most[row] = max(most[row], elem_get(x[at + i], lane));
    }
  }
  most = group_max(most, local);
  var sum = vec2<f32>();
  for (var i = local; i * ELEMS < count; i += WG) {
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let row = (i * ELEMS + lane) / p.cols;
      sum[row] += exp(elem_get(x[at + i], lane) - most[row]);
    }
  }
  sum = group_add(sum, local);
  for (var i = local; i * ELEMS < count; i += WG) {
    var packed = 0u;
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let row = (i * ELEMS + lane) / p.cols;
      let label = label_of(first + row);
      let hit = select(0.0, 1.0, label == i32((i * ELEMS + lane) % p.cols));
      let d = (exp(elem_get(x[at + i], lane) - most[row]) / sum[row] - hit) * p.scale;
      packed = elem_put(packed, lane, select(d, 0.0, label < 0));
    }
    dx[at + i] = packed;
  }
  if (local < ELEMS && first + local < p.rows) {
    losses[p.first + first + local] = loss(first + local, most[local], sum[local]);
  }
}

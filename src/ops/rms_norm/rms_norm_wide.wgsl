// y = x / sqrt(mean(x²) + eps) · w over the last dim, where x and w broadcast against each other.
// One workgroup per row of y, or where a word holds two elements, per two rows: no word belongs to
// two workgroups. Sums are over the columns of x, of which there may be one for many of y.
// uses: grid
const WG = 32u;
struct Params {
  rows: u32,   // of y
  cols: u32,   // of y
  cols_x: u32, // of x: cols, or 1
  step_w: u32, // row_at one column of w to the next: 1, or 0
  eps: f32,
  rank: u32,   // of the loop nest over rows
  pad: vec2<u32>,
  dims: array<vec4<u32>, 2>, // outermost first
  stride_x: array<vec4<u32>, 2>,
  stride_w: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read>       w: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>; // (rows, cols)
@group(0) @binding(3) var<uniform>             p: Params;
alias Reduced = vec2<f32>; // by row of the workgroup

// Where row r starts in x and in w, in elements.
fn starts(r: u32) -> vec2<u32> {
  var rest = r;
  var at = vec2<u32>();
  for (var d = p.rank; d > 0u; d--) {
    let word = (d - 1u) / 4u;
    let lane = (d - 1u) % 4u;
    let c = rest % p.dims[word][lane];
    rest /= p.dims[word][lane];
    at += c * vec2<u32>(p.stride_x[word][lane], p.stride_w[word][lane]);
  }
  return at;
}

fn x_at(e: u32) -> f32 { return elem_get(x[e / ELEMS], e % ELEMS); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = grid_group(group, groups) * ELEMS;
  if (first >= p.rows) {
    return;
  }
  let rows = min(ELEMS, p.rows - first);
  var row_at = array<vec2<u32>, 2>(starts(first), starts(min(first + 1u, p.rows - 1u)));
  var sum = vec2<f32>();
  for (var r = 0u; r < rows; r++) {
    for (var i = local; i < p.cols_x; i += WG) {
      let v = x_at(row_at[r].x + i);
      sum[r] += v * v;
    }
  }
  let factor = inverseSqrt(group_add(sum, local) / f32(p.cols_x) + p.eps);
  let count = rows * p.cols; // elements of these rows
  let at = first / ELEMS * p.cols; // words: together the rows are whole ones
  for (var i = local; i * ELEMS < count; i += WG) {
    var packed = 0u;
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let r = (i * ELEMS + lane) / p.cols;
      let c = (i * ELEMS + lane) % p.cols;
      let e = row_at[r].y + c * p.step_w;
      let weight = elem_get(w[e / ELEMS], e % ELEMS);
      packed = elem_put(packed, lane, x_at(row_at[r].x + min(c, p.cols_x - 1u)) * factor[r] * weight);
    }
    y[at + i] = packed;
  }
}

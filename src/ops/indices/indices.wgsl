// rows[b] += index[b] * stride, a negative index counted from the end; NOWHERE if it lies outside its dim,
// and then for good.  One thread per row.
// uses: grid
override WG: u32 = 64u;
const FIRST = true; // rows begin with this index, else they have some
const MASK = false; // index has bytes: row b itself where it is true
struct Params {
  n: u32,
  size: u32,   // of the dim
  stride: u32, // rows
  rank: u32,
  dims: array<vec4<u32>, 2>, // of rows, outermost first
  step: array<vec4<u32>, 2>, // of the index
}
@group(0) @binding(0) var<storage, read>       index: array<i32>;
@group(0) @binding(1) var<storage, read_write> rows: array<i32>; // (n)
@group(0) @binding(2) var<uniform>             p: Params;

const NOWHERE = 0x7fffffff;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let b = grid_group(group, groups) * WG + local;
  if (b >= p.n) {
    return;
  }
  if (MASK) {
    let byte = extractBits(u32(index[b / 4u]), b % 4u * 8u, 8u);
    rows[b] = select(NOWHERE, i32(b), byte != 0u);
    return;
  }
  var rest = b;
  var at = 0u;
  for (var d = p.rank; d > 0u; d--) {
    let size = p.dims[(d - 1u) / 4u][(d - 1u) % 4u];
    at += rest % size * p.step[(d - 1u) / 4u][(d - 1u) % 4u];
    rest /= size;
  }
  var i = index[at];
  i = select(i, i + i32(p.size), i < 0);
  var row = 0;
  if (!FIRST) {
    row = rows[b];
  }
  let outside = i < 0 || i >= i32(p.size) || row == NOWHERE;
  rows[b] = select(row + i * i32(p.stride), NOWHERE, outside);
}

// y[c] = x[sum(c * stride) + index[sum(c * step)] * axis_stride]: rows or elements by an index
// tensor. A negative index counts from the end; one outside the axis gives 0, never a read outside.
// One thread per unit of y (ELEMS elements of BITS bits): it owns whole words also where rows end.
// uses: grid
override WG: u32 = 64u;
alias T = u32;    // the unit: u32 or vec4<u32>
const BITS = 32u; // of an element in each word of a unit
struct Params {
  numel: u32, // of y
  rank: u32,
  axis: u32,        // size of the dim of x that is indexed
  axis_stride: u32, // elements of x
  dims: array<vec4<u32>, 3>,   // of y, outermost first, merged
  stride: array<vec4<u32>, 3>, // of x
  step: array<vec4<u32>, 3>,   // of the index
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read>       index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

fn element(e: u32) -> T {
  var rest = e;
  var at = 0u;
  var which = 0u;
  for (var d = p.rank; d > 0u; d--) {
    let word = (d - 1u) / 4u;
    let lane = (d - 1u) % 4u;
    let c = rest % p.dims[word][lane];
    rest /= p.dims[word][lane];
    at += c * p.stride[word][lane];
    which += c * p.step[word][lane];
  }
  var row = index[which];
  row = select(row, row + i32(p.axis), row < 0);
  if (row < 0 || row >= i32(p.axis)) {
    return T();
  }
  at += u32(row) * p.axis_stride;
  return extractBits(x[at / ELEMS], at % ELEMS * BITS, BITS);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = grid_group(group, groups) * WG + local;
  if (unit * ELEMS >= p.numel) {
    return;
  }
  var packed = T();
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = min(unit * ELEMS + lane, p.numel - 1u);
    packed = insertBits(packed, element(e), lane * BITS, BITS);
  }
  y[unit] = packed;
}

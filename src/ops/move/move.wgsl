// y[c] = x[base + sum((c - start) * stride)] where 0 <= c - start < size in every dim of y, else the
// fill value or, if `keep`, what y has there, or what an edge says: slices, permutations, repeats, pads, concatenations.
// One thread per unit of y (ELEMS elements of BITS bits): it owns whole words also where rows end.
// uses: grid
override WG: u32 = 64u;
alias T = u32;    // the unit: u32 or vec4<u32>
const BITS = 32u; // of an element in each word of a unit
struct Params {
  first: u32, // unit of y
  n: u32,     // units of y from there on
  numel: u32, // elements of y
  rank: u32,  // of y's dims, merged
  base: u32,  // elements of x
  fill: u32,  // bits of an element
  keep: u32,
  edge: u32, // what lies outside, see `beyond`
  dims: array<vec4<u32>, 3>,   // outermost first
  start: array<vec4<u32>, 3>,  // modulo 2^32: negative ones crop
  size: array<vec4<u32>, 3>,
  stride: array<vec4<u32>, 3>, // modulo 2^32: negative ones run backwards
}
@group(0) @binding(0) var<storage, read>       x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform>             p: Params;

const ELEMS = 32u / BITS;
const NOWHERE = 0xffffffffu;
// p.edge, as enum move_edge counts.
const REFLECTED = 1u;
const NEAREST = 2u;
const AGAIN = 3u; // round again

// Where a coordinate outside 0 … size - 1 (modulo 2^32) leads to.
fn beyond(c: u32, size: u32) -> u32 {
  let before = bitcast<i32>(c) < 0;
  switch (p.edge) {
    case REFLECTED: { return select(2u * (size - 1u) - c, 0u - c, before); }
    case NEAREST: { return select(size - 1u, 0u, before); }
    case AGAIN: { return select(c - size, c + size, before); }
    default: { return c; }
  }
}

// The element of x that element e of y takes.
fn source(e: u32) -> u32 {
  var rest = e;
  var at = p.base;
  for (var d = p.rank; d > 0u; d--) {
    let word = (d - 1u) / 4u;
    let lane = (d - 1u) % 4u;
    let dim = p.dims[word][lane];
    let size = p.size[word][lane];
    var c = rest % dim - p.start[word][lane];
    rest /= dim;
    if (c >= size) {
      c = beyond(c, size);
      if (c >= size) {
        return NOWHERE;
      }
    }
    at += c * p.stride[word][lane];
  }
  return at;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let step = grid_group(group, groups) * WG + local;
  if (step >= p.n) {
    return;
  }
  let unit = p.first + step;
  var packed = T();
  if (p.keep != 0u) {
    packed = y[unit];
  }
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = unit * ELEMS + lane;
    if (e >= p.numel) {
      break;
    }
    let at = source(e);
    if (at != NOWHERE) {
      let bits = extractBits(x[at / ELEMS], at % ELEMS * BITS, BITS);
      packed = insertBits(packed, bits, lane * BITS, BITS);
    } else if (p.keep == 0u) {
      packed = insertBits(packed, T(p.fill), lane * BITS, BITS);
    }
  }
  y[unit] = packed;
}

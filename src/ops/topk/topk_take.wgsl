// values and indices (outer, k, inner) from the order of each line.  One thread per word of values.
// uses: grid
override WG: u32 = 64u;
const BITS = 32u; // of an element
struct Params {
  n: u32, // results
  size: u32,
  inner: u32,
  k: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;       // (outer, size, inner)
@group(0) @binding(1) var<storage, read>       order: array<u32>;   // (outer * inner, k)
@group(0) @binding(2) var<storage, read_write> values: array<u32>;  // (outer, k, inner)
@group(0) @binding(3) var<storage, read_write> indices: array<u32>; // (outer, k, inner)
@group(0) @binding(4) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.n; lane++) {
    let e = word * ELEMS + lane;
    let outer = e / p.inner / p.k;
    let i = order[(outer * p.inner + e % p.inner) * p.k + e / p.inner % p.k];
    let at = (outer * p.size + i) * p.inner + e % p.inner;
    packed = insertBits(packed, extractBits(x[at / ELEMS], at % ELEMS * BITS, BITS), lane * BITS, BITS);
    indices[e] = i;
  }
  values[word] = packed;
}

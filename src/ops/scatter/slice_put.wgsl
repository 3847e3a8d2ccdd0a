// y = x with every step-th element of a dim from `start` on replaced by the source's.  One thread per
// word of y; tensors are (outer, dim, inner).
// uses: grid slice_put_params
override WG: u32 = 64u;
const BITS = 32u; // of an element
@group(0) @binding(0) var<storage, read>       x: array<u32>;     // (outer, size, inner)
@group(0) @binding(1) var<storage, read>       from_: array<u32>; // (outer, count, inner): the source
@group(0) @binding(2) var<storage, read_write> y: array<u32>;     // (outer, size, inner)
@group(0) @binding(3) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

fn element(e: u32) -> u32 {
  let row = e / p.inner;
  let off = row % p.size - p.start; // wraps in front of the first
  let k = off / p.step;
  if (k < p.count && off == k * p.step) {
    let s = (row / p.size * p.count + k) * p.inner + e % p.inner;
    return extractBits(from_[s / ELEMS], s % ELEMS * BITS, BITS);
  }
  return extractBits(x[e / ELEMS], e % ELEMS * BITS, BITS);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = min(word * ELEMS + lane, p.n - 1u);
    packed = insertBits(packed, element(e), lane * BITS, BITS);
  }
  y[word] = packed;
}

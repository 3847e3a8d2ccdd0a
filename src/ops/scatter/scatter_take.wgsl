// y[e] = the source of e's last update, or x[e] if it has none.  One thread per word of y.
// uses: grid scatter_params
override WG: u32 = 64u;
const BITS = 32u;    // of an element
const VALUE = false; // every update is the value of the parameters
@group(0) @binding(0) var<storage, read>       x: array<u32>;     // (numel)
@group(0) @binding(1) var<storage, read>       from_: array<u32>; // the source
@group(0) @binding(2) var<storage, read>       last: array<u32>;  // (numel)
@group(0) @binding(3) var<storage, read_write> y: array<u32>;     // (numel)
@group(0) @binding(4) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

fn element(e: u32) -> u32 {
  let j = last[e];
  if (j == 0u) {
    return extractBits(x[e / ELEMS], e % ELEMS * BITS, BITS);
  }
  if (VALUE) {
    return p.value;
  }
  let s = update_of(j - 1u).source;
  return extractBits(from_[s / ELEMS], s % ELEMS * BITS, BITS);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.numel) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.numel; lane++) {
    packed = insertBits(packed, element(word * ELEMS + lane), lane * BITS, BITS);
  }
  y[word] = packed;
}

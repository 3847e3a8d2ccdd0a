// sums = x as 4 bytes an element, or zeros: what updates begin with.  One thread per element.
// uses: grid
override WG: u32 = 64u;
const ZEROS = 0u;
const WORDS = 1u;  // elements of 4 bytes as they are
const HALVES = 2u; // floats of 2 bytes
const IN = ZEROS;
struct Params {
  n: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let e = grid_group(group, groups) * WG + local;
  if (e >= p.n) {
    return;
  }
  if (IN == ZEROS) {
    sums[e] = 0u;
  } else if (IN == WORDS) {
    sums[e] = x[e];
  } else {
    sums[e] = bitcast<u32>(unpack2x16float(x[e / 2u])[e % 2u]);
  }
}

// y[j] = the place that step j belongs to: the first e with sums[e] > j, as one index for each of x's dims.
// One thread per j. sums never falls, and its last one is n.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32,    // steps
  size: u32, // elements of sums
  rank: u32,
  pad: u32,
  dims: array<vec4<u32>, 2>, // outermost first
}
@group(0) @binding(0) var<storage, read>       sums: array<i32>; // (size)
@group(0) @binding(1) var<storage, read_write> y: array<u32>;    // (n, rank)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let j = grid_group(group, groups) * WG + local;
  if (j >= p.n) {
    return;
  }
  var low = 0u;
  var high = p.size;
  while (low < high) {
    let middle = low + (high - low) / 2u;
    if (sums[middle] > i32(j)) {
      high = middle;
    } else {
      low = middle + 1u;
    }
  }
  for (var d = p.rank; d > 0u; d--) {
    let dim = p.dims[(d - 1u) / 4u][(d - 1u) % 4u];
    y[j * p.rank + d - 1u] = low % dim;
    low /= dim;
  }
}

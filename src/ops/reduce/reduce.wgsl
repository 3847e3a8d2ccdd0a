// y[c] = the sum, the product, the extremum or the place of the extremum of x over the reduced dims.
// GROUP: one workgroup per word of y, whose threads share the elements; else one thread per word.
// uses: grid reduce_best reduce_params
override WG: u32 = 64u;
const GROUP = true;
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  var packed = 0u;
  if (GROUP) {
    for (var lane = 0u; lane < OUT && g * OUT < p.numel; lane++) {
      let base = kept_base(min(g * OUT + lane, p.numel - 1u));
      packed = put(packed, lane, shared_best(partial(base, local, p.count, WG), local));
    }
    if (local == 0u && g * OUT < p.numel) {
      y[g] = packed;
    }
  } else {
    let word = g * WG + local;
    for (var lane = 0u; lane < OUT && word * OUT < p.numel; lane++) {
      let base = kept_base(min(word * OUT + lane, p.numel - 1u));
      packed = put(packed, lane, partial(base, 0u, p.count, 1u));
    }
    if (word * OUT < p.numel) {
      y[word] = packed;
    }
  }
}

// y[e] = the source of e's last update, in place: elements without one stay.  One thread per update;
// elements have 4 bytes.
// uses: grid scatter_params
override WG: u32 = 64u;
const ALONE = false; // no element has two updates
@group(0) @binding(0) var<storage, read>       index: array<i32>;
@group(0) @binding(1) var<storage, read>       from_: array<u32>; // the source
@group(0) @binding(2) var<storage, read>       last: array<u32>;  // (numel)
@group(0) @binding(3) var<storage, read_write> y: array<u32>;     // (numel)
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let j = grid_group(group, groups) * WG + local;
  if (j >= p.n) {
    return;
  }
  let u = update_of(j);
  let i = u32(index[u.index]);
  if (i >= p.axis) {
    return;
  }
  let at = u.at + i * p.axis_stride;
  if (ALONE || last[at] == j + 1u) {
    y[at] = from_[u.source];
  }
}

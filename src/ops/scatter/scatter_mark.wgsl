// last[e] = 1 + the last update of element e, in the order of updates; 0: none.  One thread per
// update.
// uses: grid scatter_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       index: array<i32>;
@group(0) @binding(1) var<storage, read_write> last: array<atomic<u32>>; // (numel)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let j = grid_group(group, groups) * WG + local;
  if (j >= p.n) {
    return;
  }
  let u = update_of(j);
  let i = u32(index[u.index]);
  if (i < p.axis) {
    atomicMax(&last[u.at + i * p.axis_stride], j + 1u);
  }
}

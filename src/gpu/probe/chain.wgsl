// y[i] = x[i] + add: one link of a chain of dispatches.  One thread per element.
// uses: grid
override WG: u32 = 64u;
struct Params { n: u32, add: u32 }
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (n)
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // (n)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i < p.n) {
    y[i] = x[i] + p.add;
  }
}

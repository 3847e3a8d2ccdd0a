// cache[b, start + i] = x[b, i] in whole words.  One thread per word of x.
// uses: grid cache_append_params
alias T = u32;
const WG = 64u;
@group(0) @binding(0) var<storage, read>       x: array<T>;     // (batches, batch)
@group(0) @binding(1) var<storage, read_write> cache: array<T>; // (batches, stride)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i < p.n) {
    cache[i / p.batch * p.stride + p.start + i % p.batch] = x[i];
  }
}

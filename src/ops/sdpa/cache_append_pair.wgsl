// cache_append for the keys and the values of one batch, in one dispatch.
// uses: grid cache_append_params
alias T = u32;
const WG = 64u;
@group(0) @binding(0) var<storage, read>       k: array<T>;
@group(0) @binding(1) var<storage, read>       v: array<T>;
@group(0) @binding(2) var<storage, read_write> k_cache: array<T>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<T>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i < p.n) {
    k_cache[p.start + i] = k[i];
    v_cache[p.start + i] = v[i];
  }
}

// y with every step-th element of a dim from `start` on replaced by the source's, in place.  One thread
// per element of the source; elements have 4 bytes.
// uses: grid slice_put_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       from_: array<u32>; // (outer, count, inner): the source
@group(0) @binding(1) var<storage, read_write> y: array<u32>;     // (outer, size, inner)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let s = grid_group(group, groups) * WG + local;
  let outer = p.n / (p.size * p.inner);
  if (s >= outer * p.count * p.inner) {
    return;
  }
  let row = s / p.inner;
  let at = row / p.count * p.size + p.start + row % p.count * p.step;
  y[at * p.inner + s % p.inner] = from_[s];
}

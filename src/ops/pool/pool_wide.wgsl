// pool.wgsl for few large windows.  One workgroup per word of y, whose threads share each window.
// uses: grid pool_params pool_group
const WG = 64u;
const ADAPTIVE = false;
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (planes, x_size)
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // (planes, y_size)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups);
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS < p.n; lane++) {
    let w = window_of(place_of(min(word * ELEMS + lane, p.n - 1u)));
    packed = elem_put(packed, lane, pool_value(pool_together(w, local), w.divisor));
  }
  if (local == 0u && word * ELEMS < p.n) {
    y[word] = packed;
  }
}

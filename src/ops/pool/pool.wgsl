// y = what a window of x is pooled to.  One thread per four elements of y.
// uses: grid pool_params
const WG = 64u;
const ADAPTIVE = false;
@group(0) @binding(0) var<storage, read>       x: array<u32>;  // (planes, x_size)
@group(0) @binding(1) var<storage, read_write> y: array<Quad>; // (planes, y_size)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let quad = grid_group(group, groups) * WG + local;
  if (quad * 4u >= p.n) {
    return;
  }
  var values = Elem4();
  var at = place_of(quad * 4u);
  for (var lane = 0u; lane < 4u && quad * 4u + lane < p.n; lane++) {
    let w = window_of(at);
    values[lane] = pool_value(pool_all(w), w.divisor);
    at = place_after(at);
  }
  y[quad] = quad_put(values);
}

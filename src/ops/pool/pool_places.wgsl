// pool.wgsl with the places of the largest elements as a second result.  One thread per four.
// uses: grid pool_params pool_max
const WG = 64u;
const ADAPTIVE = false;
@group(0) @binding(0) var<storage, read>       x: array<u32>;         // (planes, x_size)
@group(0) @binding(1) var<storage, read_write> y: array<Quad>;        // (planes, y_size)
@group(0) @binding(2) var<storage, read_write> places: array<vec4<u32>>; // (planes, y_size)
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let quad = grid_group(group, groups) * WG + local;
  if (quad * 4u >= p.n) {
    return;
  }
  var values = Elem4();
  var found = vec4<u32>();
  var at = place_of(quad * 4u);
  for (var lane = 0u; lane < 4u && quad * 4u + lane < p.n; lane++) {
    let best = pool_all(window_of(at));
    values[lane] = best.value;
    found[lane] = best.at;
    at = place_after(at);
  }
  y[quad] = quad_put(values);
  places[quad] = found;
}

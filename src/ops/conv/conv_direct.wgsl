// y[c, q] = Σ_k w[k, c] · x[k at q] for groups with few channels. A thread sums four channels of a group
// for OUT neighbouring pixels; threads side by side take pixels side by side and share w.
// uses: grid either conv_params conv_walk conv_put conv_end not_a_number
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read>       w: array<Quad>;   // (taps, input channels, output channels)
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // (all channels)
@group(0) @binding(3) var<storage, read>       rest: array<Rest>; // as y
@group(0) @binding(4) var<storage, read_write> y: array<Out>;
@group(0) @binding(5) var<uniform>             p: Params;

// One pixel: taps outside, channels inside.
fn sum_of(pixel: u32, group: u32, quad: u32) -> vec4<f32> {
  var walk = walk_from(pixel, group, 0u);
  var sum = vec4<f32>(0.0);
  for (var t = 0u; t < p.taps; t++) {
    let at = tap_in_w(group, vec3<u32>(walk.tap)) + quad;
    for (var c = 0u; c < p.ic && walk.inside; c++) {
      let i = walk.at + c * p.in_plane;
      let v = elem_get(x[i / ELEMS], i % ELEMS);
      sum = fma(vec4<f32>(v), quad_get(w[at + c * p.w_row]), sum);
    }
    walk_on(&walk, p.ic);
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups) * WG + local;
  let across = (p.pixels + OUT - 1u) / OUT;
  let quads = (p.oc + 3u) / 4u;
  let pixel = index % across * OUT;
  let quad = index / across % quads;
  let g = index / (across * quads);
  if (g >= p.groups) {
    return;
  }
  let a = sum_of(pixel, g, quad);
  var b = a;
  if (OUT == 2u) {
    b = sum_of(pixel + 1u, g, quad);
  }
  for (var i = 0u; i < 4u && 4u * quad + i < p.oc; i++) {
    let c = g * p.oc + 4u * quad + i;
    conv_store(c, pixel, vec2<f32>(a[i], b[i]) + vec2<f32>(conv_bias(c)));
  }
}

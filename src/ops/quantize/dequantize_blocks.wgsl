// y = (x − zero) · scale, with the zero point and the scale of each element's block.
// One thread per four elements.
// uses: grid either blocks zero_storage blocks_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;
@group(0) @binding(1) var<storage, read>       scales: array<u32>; // (blocks)
@group(0) @binding(2) var<storage, read>       zeros: array<u32>;  // (blocks)
@group(0) @binding(3) var<storage, read_write> y: array<Into>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  var scale: vec4<f32>;
  var zero: vec4<f32>;
  for (var k = 0u; k < 4u; k++) {
    let block = block_of(4u * i + k);
    scale[k] = block_scale(block);
    zero[k] = block_zero(block);
  }
  y[i] = into((vec4<f32>(quad_get(x[i])) - zero) * scale);
}

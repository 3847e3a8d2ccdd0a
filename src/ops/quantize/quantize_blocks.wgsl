// y as in quantize, with the scale and the zero point of each element's block:
//   late: clamp(round(x / scale + zero)), else clamp(round(x / scale) + zero).
// x / scale is x times the rounded inverse, as PyTorch has it. One thread per four elements.
// uses: grid not_a_number either exact_divide blocks zero_storage blocks_params
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
  var inverse: vec4<f32>;
  var zero: vec4<f32>;
  for (var k = 0u; k < 4u; k++) {
    let block = block_of(4u * i + k);
    inverse[k] = exact_divide(1.0, block_scale(block));
    zero[k] = block_zero(block);
  }
  let v = quad_get(x[i]);
  // p.late keeps compilers from making one operation with one rounding of product and sum.
  let product = bitcast<vec4<f32>>(bitcast<vec4<u32>>(v * inverse) ^ vec4<u32>(p.late & 2u));
  let sum = select(round(product) + zero, round(product + zero), vec4<bool>(p.late == 1u));
  let q = min(max(sum, vec4<f32>(p.low)), vec4<f32>(p.high));
  y[i] = into(select(q, vec4<f32>(), is_nan(v)));
}

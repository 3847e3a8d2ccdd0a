// Scales and zero points of elements in blocks; `scales`, `zeros` and `p` (blocks_params) are the shader's,
// which has zero_storage too.
fn block_of(i: u32) -> u32 {
  var rest = p.first + min(i, p.n - 1u);
  var block = 0u;
  for (var d = p.rank - 1u; d > 0u; d--) {
    let size = p.size[d / 4u][d % 4u];
    block += rest % size * p.step[d / 4u][d % 4u];
    rest /= size;
  }
  return block + rest * p.step[0].x;
}
fn block_scale(block: u32) -> f32 {
  return either_get(scales[either_word(block, p.half)], block, p.half);
}
fn block_zero(block: u32) -> f32 {
  switch (p.zeros) {
    case ZEROS_I8: { return f32(extractBits(bitcast<i32>(zeros[block / 4u]), 8u * (block % 4u), 8u)); }
    case ZEROS_U8: { return f32(extractBits(zeros[block / 4u], 8u * (block % 4u), 8u)); }
    case ZEROS_I32: { return f32(bitcast<i32>(zeros[block])); }
    case ZEROS_F16: { return unpack2x16float(zeros[block / 2u])[block % 2u]; }
    case ZEROS_F32: { return bitcast<f32>(zeros[block]); }
    default: { return 0.0; } // there are none
  }
}

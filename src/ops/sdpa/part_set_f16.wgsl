// A part of a result in full precision, written where results of f16 are: two quads of theirs.
fn part_set(at: u32, v: vec4<f32>) {
  out[2u * at] = bitcast<vec2<u32>>(v.xy);
  out[2u * at + 1u] = bitcast<vec2<u32>>(v.zw);
}

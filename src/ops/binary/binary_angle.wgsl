// The angle of the point (v, u), from an octant's; zeros have signs, as in C.
fn is_minus(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x80000000u)) != vec4<u32>();
}
fn angle(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let zero = vec4<f32>();
  let longer = max(abs(u), abs(v));
  let shorter = min(abs(u), abs(v));
  let slope = select(shorter / select(longer, vec4<f32>(1.0), longer == zero), vec4<f32>(1.0), shorter == longer);
  var y = select(atan(slope), zero, longer == zero);
  y = select(y, 1.5707963 - y, abs(u) > abs(v));
  y = select(y, 3.1415927 - y, is_minus(v));
  return select(select(y, -y, is_minus(u)), not_a_number(), is_nan(u) | is_nan(v));
}

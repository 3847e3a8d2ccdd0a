// base ^ exponent as PyTorch defines it: integral exponents of negative bases, and the corners
// where the builtin is undefined.
fn power(base: vec4<f32>, exponent: vec4<f32>) -> vec4<f32> {
  let size = abs(base);
  let whole = floor(exponent) == exponent;
  let odd = whole & (floor(exponent * 0.5) * 2.0 != exponent);
  var y = pow(size, exponent);
  y = select(y, size, exponent == vec4<f32>(1.0));
  y = select(y, size * size, exponent == vec4<f32>(2.0));
  y = select(y, size * size * size, exponent == vec4<f32>(3.0));
  y = select(y, sqrt(size), exponent == vec4<f32>(0.5));
  y = select(y, 1.0 / size, exponent == vec4<f32>(-1.0));
  y = select(y, 1.0 / (size * size), exponent == vec4<f32>(-2.0));
  y = select(y, vec4<f32>(0.0), (size == vec4<f32>(0.0)) & (exponent > vec4<f32>(0.0)));
  y = select(y, -y, odd & (base < vec4<f32>(0.0)));
  y = select(y, not_a_number(), (base < vec4<f32>(0.0)) & !whole);
  return select(y, vec4<f32>(1.0), (exponent == vec4<f32>(0.0)) | (base == vec4<f32>(1.0)));
}

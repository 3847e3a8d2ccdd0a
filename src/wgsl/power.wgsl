// base ^ exponent as PyTorch defines it: integral exponents of negative bases, and the corners
// where the builtin is undefined: zeros, infinities, NaNs.
fn power(base: vec4<f32>, exponent: vec4<f32>) -> vec4<f32> {
  let zero = vec4<f32>();
  let one = vec4<f32>(1.0);
  let size = abs(base);
  let minus = bitcast<vec4<u32>>(base) >= vec4<u32>(0x80000000u); // −0 too
  let whole = floor(exponent) == exponent;
  let odd = whole & !is_infinite(exponent) & (floor(exponent * 0.5) * 2.0 != exponent);
  var y = pow(size, exponent);
  y = select(y, size, exponent == one);
  y = select(y, size * size, exponent == vec4<f32>(2.0));
  y = select(y, size * size * size, exponent == vec4<f32>(3.0));
  y = select(y, sqrt(size), exponent == vec4<f32>(0.5));
  y = select(y, 1.0 / size, exponent == -one);
  y = select(y, 1.0 / (size * size), exponent == vec4<f32>(-2.0));
  y = select(y, select(zero, 1.0 / size, exponent < zero), size == zero);
  y = select(y, select(zero, size, exponent > zero), is_infinite(base));
  y = select(y, one, (size == one) & is_infinite(exponent));
  y = select(y, -y, odd & minus);
  y = select(y, not_a_number(), (base < zero) & !whole & !is_infinite(base));
  y = select(y, not_a_number(), is_nan(base) | is_nan(exponent));
  return select(y, one, (exponent == zero) | (base == one));
}

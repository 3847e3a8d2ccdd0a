// a / b rounded as IEEE 754 has it, where WGSL lets a device be 2.5 units off: what is rounded to an
// integer next must be right at ties too. Subnormal numbers are as the device has them.
fn exact_divide(a: f32, b: f32) -> f32 {
  let rough = a / b;
  let x = bitcast<u32>(a) & 0x7fffffffu;
  let y = bitcast<u32>(b) & 0x7fffffffu;
  let x_power = i32(x >> 23u);
  let y_power = i32(y >> 23u);
  let m = (x & 0x7fffffu) | 0x800000u;
  let d = (y & 0x7fffffu) | 0x800000u;
  let up = select(23u, 24u, m < d); // the quotient then has 24 bits
  let power = x_power - y_power + 150 - i32(up);
  if (min(x_power, y_power) == 0 || max(x_power, y_power) == 255 || power < 1 || power > 254) {
    return rough;
  }
  var q = u32(f32(m) / f32(d) * f32(1u << up));
  var rest = bitcast<i32>((m << up) - q * d); // a few times d, so its low 32 bits are all of it
  for (var i = 0u; i < 6u; i++) {
    let step = select(0, 1, 2 * rest > i32(d)) - select(0, 1, 2 * rest < -i32(d));
    q = bitcast<u32>(bitcast<i32>(q) + step);
    rest -= step * i32(d);
  }
  let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
  return bitcast<f32>(sign | ((u32(power) << 23u) + q - 0x800000u));
}

// What follows a product of many rows, four columns at a time: factors of x and of the weight, a bias, a
// residual or a gate. The kernel binds factors, norms, bias and y; n counts from p.first, and that, p.n and
// p.cols are multiples of four.
fn inverse(power_of_two: f32) -> f32 { return bitcast<f32>(0x7f000000u - bitcast<u32>(power_of_two)); }
fn inverse_norms(n: u32) -> vec4<f32> {
  return vec4<f32>(inverse(norms[n]), inverse(norms[n + 1u]), inverse(norms[n + 2u]), inverse(norms[n + 3u]));
}

fn bias_quad(b: u32) -> vec4<f32> {
  if (p.bias == 2u) {
    let words = select(bias[b / 8u].xy, bias[b / 8u].zw, b % 8u == 4u);
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
  }
  return bitcast<vec4<f32>>(bias[b / 4u]);
}

fn put4(m: u32, n: u32, sum: vec4<f32>) {
  if (m >= p.m || n >= p.n) {
    return;
  }
  let at = p.first + n;
  var v = sum * factors[m] * inverse_norms(at);
  if (p.bias != 0u) {
    let other = bias_quad(m * p.bias_m + at);
    if (p.gated == 1u) {
      v *= other / (1.0 + exp(-other));
    } else {
      v += other;
    }
  }
  y[(m * p.cols + at) / 4u] = quad_put(v);
}

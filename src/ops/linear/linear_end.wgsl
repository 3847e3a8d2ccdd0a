// What follows a product: alpha, beta · bias, an activation, a residual; and columns of y from n on.
// The kernel binds bias, rest and y, and n counts from p.first.
// p.act, as enum product_act counts.
const RELU = 1u;
const GELU = 2u;
const GELU_TANH = 3u;
const SILU = 4u;
fn bias_at(m: u32, n: u32) -> f32 {
  let at = m * p.bias_m + (p.first + min(n, p.n - 1u)) * p.bias_n;
  return either_get(bias[either_word(at, p.bias - 1u)], at, p.bias - 1u);
}

fn y_at(b: u32, m: u32, n: u32) -> u32 { return (b * p.m + m) * p.cols + p.first + min(n, p.n - 1u); }

fn rest_at(b: u32, m: u32, n: u32) -> f32 {
  let at = y_at(b, m, n);
  return elem_get(rest[at / ELEMS], at % ELEMS);
}

// Columns n to n + 3 of row m.
fn linear_end(b: u32, m: u32, n: u32, sum: vec4<f32>) -> vec4<f32> {
  var v = p.alpha * sum;
  if (p.bias != 0u) {
    v += p.beta * vec4<f32>(bias_at(m, n), bias_at(m, n + 1u), bias_at(m, n + 2u), bias_at(m, n + 3u));
  }
  switch (p.act) {
    case RELU: { v = relu(v); }
    case GELU: { v = gelu(v); }
    case GELU_TANH: { v = gelu_tanh(v); }
    case SILU: { v *= sigmoid(v); }
    default: {}
  }
  if (p.rest != 0u) {
    v += vec4<f32>(rest_at(b, m, n), rest_at(b, m, n + 1u), rest_at(b, m, n + 2u), rest_at(b, m, n + 3u));
  }
  return v;
}

// n and p.first are even where two columns share a word.
fn linear_put(b: u32, m: u32, n: u32, sum: vec4<f32>) {
  if (m >= p.m || n >= p.n) {
    return;
  }
  let v = linear_end(b, m, n, sum);
  for (var i = 0u; i < 4u && n + i < p.n; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      word = elem_put(word, lane, v[i + lane]);
    }
    y[y_at(b, m, n + i) / ELEMS] = word;
  }
}

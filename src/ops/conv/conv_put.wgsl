// Where sums of a convolution go. A library conv_out_… says how elements lie in y and in what is
// added: stores of OUT neighbouring pixels. c counts the channels of y here, pixel those of all images.
fn conv_bias(c: u32) -> f32 {
  let i = p.channel + c;
  if (p.bias == 0u) {
    return 0.0;
  }
  return either_get(bias[either_word(i, p.bias - 1u)], i, p.bias - 1u);
}

fn conv_at(c: u32, pixel: u32) -> u32 {
  var q = pixel;
  var at = c * p.out_plane;
  if (p.pixels > p.grid) {
    at += pixel / p.grid * p.out_image;
    q = pixel % p.grid;
  }
  if (p.dense != 0u) {
    return at + q;
  }
  let o = pixel_at(q);
  return at + p.out_first + o.x * p.out_z + o.y * p.out_y + o.z * p.out_x;
}

// OUT pixels, the first of them in v.x.
fn conv_store(c: u32, pixel: u32, v: vec2<f32>) {
  let at = conv_at(c, pixel);
  var sum = vec4<f32>(v, v);
  if (p.rest != 0u) {
    sum += vec4<f32>(out_get(at), 0.0, 0.0);
  }
  out_put(at, conv_end(sum).xy);
}

// Four pixels, the first at a multiple of four.
fn conv_put(c: u32, pixel: u32, sum: vec4<f32>) {
  var v = sum + vec4<f32>(conv_bias(c));
  if (p.dense == 2u) {
    if (pixel < p.pixels) {
      let at = conv_at(c, pixel);
      if (p.rest != 0u) {
        v += out_get4(at);
      }
      out_put4(at, conv_end(v));
    }
    return;
  }
  for (var i = 0u; i < 4u && pixel + i < p.pixels; i += OUT) {
    conv_store(c, pixel + i, vec2<f32>(v[i], v[i + OUT - 1u]));
  }
}

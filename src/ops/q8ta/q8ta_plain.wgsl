// y[b, o, i, j] = Σ (x[b, c, i', j'] − x_zero) · w[o, tap, c] over taps inside x and channels c of the
// group, scaled, with a bias: see q8_real. A linear is a convolution of one place. One thread per
// word of y.
// uses: grid either apart q8_taps q8_real q8_conv_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (batch, groups · in_channels, in_size)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // by w_out, w_tap, w_in
@group(0) @binding(2) var<storage, read>       scales: array<u32>;
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (groups · out_channels)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (batch, groups · out_channels, out_size)
@group(0) @binding(5) var<uniform>             p: Params;

fn byte_of(word: u32, i: u32) -> i32 { return extractBits(bitcast<i32>(word), 8u * (i % 4u), 8u); }

// Over the channels of a group at one tap.
fn channels(x_at: u32, w_at: u32) -> i32 {
  let plane = p.in_size.x * p.in_size.y;
  var sum = 0;
  for (var c = 0u; c < p.in_channels; c++) {
    let i = x_at + c * plane;
    let k = w_at + c * p.w_in;
    sum += (byte_of(x[i / 4u], i) - p.x_zero) * byte_of(w[k / 4u], k);
  }
  return sum;
}

fn one(image: u32, channel: u32, place: vec2<u32>) -> i32 {
  let plane = p.in_size.x * p.in_size.y;
  let first = (image * p.groups + channel / p.out_channels) * p.in_channels * plane;
  var sum = 0;
  for (var i = 0u; i < p.kernel.x; i++) {
    for (var j = 0u; j < p.kernel.y; j++) {
      let tap = q8_tap(place, vec2<u32>(i, j));
      if (tap.inside) {
        sum += channels(first + tap.at.x * p.in_size.y + tap.at.y,
                        channel * p.w_out + (i * p.kernel.y + j) * p.w_tap);
      }
    }
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  let across = p.out_size.y;
  let plane = p.out_size.x * across;
  let channels = p.groups * p.out_channels;
  let numel = p.batch * channels * plane;
  if (word * ELEMS >= numel) {
    return;
  }
  var sum: vec4<i32>;
  var channel: vec4<u32>;
  for (var i = 0u; i < ELEMS; i++) {
    let at = min(word * ELEMS + i, numel - 1u);
    channel[i] = at / plane % channels;
    sum[i] = one(at / plane / channels, channel[i], vec2<u32>(at % plane / across, at % across));
  }
  y[word] = word_of(q8_real(sum, channel));
}

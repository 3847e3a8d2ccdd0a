// y[n, c, o] = Σ w[c, i, k] · x[n, i, o · mul + first + k · tap] + bias[c] + rest[n, c, o], and conv_end.
// Transposed, the place in x is a quotient by `div`, and taps that leave a remainder see nothing.
// Any sizes, any mix of dtypes. One thread per word of y.
// uses: grid either conv_end not_a_number
override WG: u32 = 64u;
struct Params {
  numel: u32,       // of y here: `channels` of each image, from `channel` on
  channel: u32,
  channels: u32,
  oc: u32,          // of a group
  ic: u32,
  x_image: u32,     // elements of an image of x, whose first group here is channel's
  w_group: u32,     // steps of w
  w_oc: u32,
  w_ic: u32,
  w_tap: u32,
  w_half: u32,      // w of 2 bytes
  bias: u32,        // 0: none, else 1 + `half`
  rest: u32,        // there is one
  end: u32,         // see conv_end
  low: f32,
  high: f32,
  in: vec4<i32>,    // depth, height, width
  out: vec4<i32>,
  kernel: vec4<i32>,
  mul: vec4<i32>,
  first: vec4<i32>,
  tap: vec4<i32>,
  div: vec4<i32>,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read>       w: array<u32>;    // as in the file
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // (all channels)
@group(0) @binding(3) var<storage, read>       rest: array<u32>; // as y
@group(0) @binding(4) var<storage, read_write> y: array<u32>;
@group(0) @binding(5) var<uniform>             p: Params;

// The pixel along an axis that tap k of pixel o sees; -1: none.
fn seen(o: i32, k: i32, axis: u32) -> i32 {
  let at = o * p.mul[axis] + p.first[axis] + k * p.tap[axis];
  return select(-1, at / p.div[axis], at >= 0 && at % p.div[axis] == 0);
}

// One tap over all channels: x from `i` on, w from `j` on.
fn channels_sum(i: u32, j: u32) -> f32 {
  let plane = u32(p.in.x * p.in.y * p.in.z);
  var sum = 0.0;
  for (var c = 0u; c < p.ic; c++) {
    let at = i + c * plane;
    let k = j + c * p.w_ic;
    sum += elem_get(x[at / ELEMS], at % ELEMS) * either_get(w[either_word(k, p.w_half)], k, p.w_half);
  }
  return sum;
}

fn one(at: u32) -> f32 {
  let plane = u32(p.out.x * p.out.y * p.out.z);
  let o = vec3<i32>(i32(at % plane) / (p.out.y * p.out.z), i32(at % plane) / p.out.z % p.out.y,
                    i32(at % plane) % p.out.z);
  let channel = p.channel + at / plane % p.channels;
  let group = channel / p.oc - p.channel / p.oc;
  let image = at / plane / p.channels * p.x_image + group * p.ic * u32(p.in.x * p.in.y * p.in.z);
  let w_first = channel / p.oc * p.w_group + channel % p.oc * p.w_oc;
  var sum = 0.0;
  for (var a = 0; a < p.kernel.x; a++) {
    let z = seen(o.x, a, 0u);
    for (var b = 0; b < p.kernel.y && z >= 0 && z < p.in.x; b++) {
      let v = seen(o.y, b, 1u);
      for (var c = 0; c < p.kernel.z && v >= 0 && v < p.in.y; c++) {
        let u = seen(o.z, c, 2u);
        if (u >= 0 && u < p.in.z) {
          sum += channels_sum(image + u32((z * p.in.y + v) * p.in.z + u),
                              w_first + u32((a * p.kernel.y + b) * p.kernel.z + c) * p.w_tap);
        }
      }
    }
  }
  if (p.bias != 0u) {
    sum += either_get(bias[either_word(channel, p.bias - 1u)], channel, p.bias - 1u);
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.numel) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.numel; lane++) {
    var v = one(word * ELEMS + lane);
    if (p.rest != 0u) {
      v += elem_get(rest[word], lane);
    }
    packed = elem_put(packed, lane, conv_end(vec4<f32>(v)).x);
  }
  y[word] = packed;
}

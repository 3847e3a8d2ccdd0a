// y = (x - mean) / sqrt(variance + eps) * w + b with numbers of each channel.  One thread per four
// elements of x (n, channels, inner).
// uses: grid
override WG: u32 = 64u;
const STATS = false; // mean holds pairs (mean, sum of squared deviations) of float32, else mean and variance are elements
const WHOLE = false; // four elements are of one channel
struct Params {
  n: u32, // elements
  inner: u32,
  channels: u32,
  first: u32, // plane of the whole tensor that x and y begin with
  affine: u32, // bit 0: w is there, bit 1: b
  eps: f32,
  count: f32, // elements of a channel, for STATS
  unused: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;
@group(0) @binding(1) var<storage, read>       w: array<u32>;        // (channels)
@group(0) @binding(2) var<storage, read>       b: array<u32>;        // (channels)
@group(0) @binding(3) var<storage, read>       mean: array<u32>;     // (channels)
@group(0) @binding(4) var<storage, read>       variance: array<u32>; // (channels)
@group(0) @binding(5) var<storage, read_write> y: array<Quad>;
@group(0) @binding(6) var<uniform>             p: Params;

// What x is multiplied with after `middle` is taken from it, and what is added then.
struct Line {
  middle: f32,
  factor: f32,
  add: f32,
}

fn line_of(e: u32) -> Line {
  let c = (p.first + e / p.inner) % p.channels;
  var l: Line;
  if (STATS) {
    l.middle = bitcast<f32>(mean[2u * c]);
    l.factor = inverseSqrt(bitcast<f32>(mean[2u * c + 1u]) / p.count + p.eps);
  } else {
    l.middle = elem_get(mean[c / ELEMS], c % ELEMS);
    l.factor = inverseSqrt(elem_get(variance[c / ELEMS], c % ELEMS) + p.eps);
  }
  if ((p.affine & 1u) != 0u) {
    l.factor *= elem_get(w[c / ELEMS], c % ELEMS);
  }
  if ((p.affine & 2u) != 0u) {
    l.add = elem_get(b[c / ELEMS], c % ELEMS);
  }
  return l;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  var v = quad_get(x[i]);
  if (WHOLE) {
    let l = line_of(i * 4u);
    v = (v - l.middle) * l.factor + l.add;
  } else {
    for (var lane = 0u; lane < 4u; lane++) {
      let l = line_of(i * 4u + lane);
      v[lane] = (v[lane] - l.middle) * l.factor + l.add;
    }
  }
  y[i] = quad_put(v);
}

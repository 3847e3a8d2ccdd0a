// y = the mean, the variance (squares / divisor) or 1 / sqrt(variance + eps) of each pair that
// moments.wgsl found.  One thread per word of y.
// uses: grid
override WG: u32 = 64u;
const MEAN = 0u;
const VARIANCE = 1u;
const FACTOR = 2u; // the reciprocal deviation
const KIND = MEAN;
struct Params {
  n: u32,
  divisor: f32, // 0: a variance is infinite, or NaN without deviations; a mean is NaN
  eps: f32,
  unused: u32,
}
@group(0) @binding(0) var<storage, read>       stats: array<vec2<f32>>; // (n)
@group(0) @binding(1) var<storage, read_write> y: array<u32>;           // (n)
@group(0) @binding(2) var<uniform>             p: Params;

var<private> infinity: u32 = 0x7f800000u; // compilers refuse infinities that they can see
var<private> not_a_number: u32 = 0x7fc00000u;

fn variance(squares: f32) -> f32 {
  if (p.divisor > 0.0) {
    return squares / p.divisor;
  }
  return bitcast<f32>(select(not_a_number, infinity, squares > 0.0));
}

fn value(pair: vec2<f32>) -> f32 {
  if (KIND == MEAN) {
    return select(pair.x, bitcast<f32>(not_a_number), p.divisor == 0.0);
  }
  if (KIND == VARIANCE) {
    return variance(pair.y);
  }
  return inverseSqrt(variance(pair.y) + p.eps);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    packed = elem_put(packed, lane, value(stats[min(word * ELEMS + lane, p.n - 1u)]));
  }
  y[word] = packed;
}

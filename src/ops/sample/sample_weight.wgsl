// Weights of a sampler and their sums: integers of 64 bits (low, high), so that a sum is the same
// in any order. The shader says const WG and Params p with temperature, scale and lowest.

// e^x for x <= 0: additions and products only, the same as on the host.
fn exp_of(x: f32) -> f32 {
  let t = max(x, -87.0) * 1.44269504;
  let whole = i32(t - 0.5);
  let f = t - f32(whole);
  let y = 1.0 + f * (0.693147181 + f * (0.240226507 + f * (0.0555041087 +
          f * (0.00961812911 + f * (0.00133335581 + f * 0.000154035304)))));
  return select(y * bitcast<f32>(u32(whole + 127) << 23u), 0.0, x < -87.0);
}

// The weight of a key, relative to that of the best one.
fn weight(key: u32, top: u32) -> f32 {
  if (key < p.lowest) { // its quotient is no finite number
    return 0.0;
  }
  return exp_of(divide(logit_of(key), p.temperature) - divide(logit_of(top), p.temperature));
}

// A weight in units of 2^-32 / scale; every step is exact but the last, which cuts.
fn fixed(w: f32) -> vec2<u32> {
  let high = floor(w * p.scale);
  return vec2<u32>(u32((w * p.scale - high) * 4294967296.0), u32(high));
}

fn wide_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}
fn wide_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}
fn wide_less(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}
// All 64 bits of a product.
fn product(a: u32, b: u32) -> vec2<u32> {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu),
                   (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}
fn wide_times(a: vec2<u32>, n: u32) -> vec2<u32> {
  return product(a.x, n) + vec2<u32>(0u, a.y * n);
}
// a · part / 2^32, and whether that left a remainder.
fn wide_part(a: vec2<u32>, part: u32) -> vec3<u32> {
  let low = product(a.x, part);
  return vec3<u32>(wide_add(product(a.y, part), vec2<u32>(low.y, 0u)), u32(low.x != 0u));
}

// Sums up to and with this thread's: (low, high) and a plain count. Uniform control flow.
var<workgroup> scan_parts: array<vec3<u32>, WG>; // afterwards every thread's
fn scan(value: vec3<u32>, local: u32) -> vec3<u32> {
  workgroupBarrier(); // the last sums have been read
  scan_parts[local] = value;
  var sum = value;
  for (var step = 1u; step < WG; step *= 2u) {
    workgroupBarrier();
    var before = vec3<u32>();
    if (local >= step) {
      before = scan_parts[local - step];
    }
    workgroupBarrier();
    sum = vec3<u32>(wide_add(sum.xy, before.xy), sum.z + before.z);
    scan_parts[local] = sum;
  }
  workgroupBarrier();
  return sum;
}

// A scale and a zero point for each block of x from its range, with zero exactly representable.
// A workgroup takes four blocks, 64 threads each, because four zero points make a word.
// uses: grid exact_divide block_range zero_storage qparams_params
const WG = 256u;
// p.rule, as enum rule counts.
const ASYMMETRIC = 0u;
const SYMMETRIC = 1u;
const UNCLIPPED = 2u;      // symmetric, and nothing is cut off
const ROW_SYMMETRIC = 3u;  // the least is that of the range
const ROW_ASYMMETRIC = 4u; // from the end of the range that is off by less
const PARTS = false; // x holds ranges of parts of blocks, (m, parts, 2)
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> scales: array<u32>; // (m)
@group(0) @binding(2) var<storage, read_write> zeros: array<u32>;  // (m)
@group(0) @binding(3) var<uniform>             p: Params;
var<workgroup> ranges: array<vec2<f32>, WG>; // (−low, high)

fn range(block: u32, lane: u32) -> vec2<f32> {
  if (!PARTS) {
    return block_range(block, lane, p.k, 64u);
  }
  var found = vec2<f32>(0.0);
  for (var i = lane; i < p.parts; i += 64u) {
    let at = 2u * (block * p.parts + i);
    found = max(found, vec2<f32>(bitcast<f32>(x[at]), bitcast<f32>(x[at + 1u])));
  }
  return found;
}

// What 2 bytes keep of a positive number. Not unpack of pack: a driver dropped that pair.
fn half_of(v: f32) -> f32 {
  let bits = bitcast<u32>(v);
  let normal = bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & ~0x1fffu);
  return select(normal, round(v * 16777216.0) / 16777216.0, v < 6.1035156e-5);
}

fn scale_of(found: vec2<f32>) -> f32 {
  var scale: f32;
  switch (p.rule) {
    case SYMMETRIC: {
      scale = max(exact_divide(max(found.x, found.y), (p.high - p.low) * 0.5), p.eps);
    }
    case UNCLIPPED: {
      let below = select(0.0, exact_divide(found.x, -p.low), p.low < 0.0);
      scale = max(max(below, exact_divide(found.y, p.high)), p.eps);
    }
    case ROW_SYMMETRIC: {
      scale = exact_divide(max(max(found.x, found.y), p.eps), p.high);
    }
    default: {
      scale = max(exact_divide(found.x + found.y, p.high - p.low), p.eps);
    }
  }
  if (p.half == 1u) {
    scale = half_of(scale); // as readers will see it
  }
  return scale;
}

fn zero_of(found: vec2<f32>, scale: f32) -> f32 {
  let low = exact_divide(-found.x, scale);
  let high = exact_divide(found.y, scale);
  switch (p.rule) {
    case ASYMMETRIC: {
      return clamp(p.low - round(low), p.low, p.high);
    }
    case ROW_ASYMMETRIC: {
      let by_low = (p.low + low) + (p.high + high) > 0.0;
      return round(clamp(select(p.high - high, p.low - low, by_low), p.low, p.high));
    }
    default: {
      return p.zero;
    }
  }
}

fn put_zeros(first: u32, zero: vec4<f32>) {
  let bytes = vec4<u32>(vec4<i32>(zero)) & vec4<u32>(255u);
  for (var i = 0u; i < 4u && first + i < p.m; i++) {
    switch (p.zeros) {
      case ZEROS_I32: { zeros[first + i] = bitcast<u32>(i32(zero[i])); }
      case ZEROS_F32: { zeros[first + i] = bitcast<u32>(zero[i]); }
      case ZEROS_F16: {
        if (i % 2u == 0u) {
          zeros[(first + i) / 2u] = pack2x16float(vec2<f32>(zero[i], zero[i + 1u]));
        }
      }
      default: {
        zeros[first / 4u] = dot(bytes, vec4<u32>(1u, 256u, 65536u, 16777216u));
      }
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = grid_group(group, groups) * 4u;
  ranges[local] = range(min(first + local / 64u, p.m - 1u), local % 64u);
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local % 64u < half) {
      ranges[local] = max(ranges[local], ranges[local + half]);
    }
  }
  workgroupBarrier();
  if (local > 0u || first >= p.m) {
    return;
  }
  var scale = vec4<f32>();
  var zero = vec4<f32>();
  for (var i = 0u; i < 4u; i++) {
    scale[i] = scale_of(ranges[i * 64u]);
    zero[i] = zero_of(ranges[i * 64u], scale[i]);
  }
  for (var i = 0u; i < 4u && first + i < p.m; i++) {
    if (p.half == 0u) {
      scales[first + i] = bitcast<u32>(scale[i]);
    } else if (i % 2u == 0u) {
      scales[(first + i) / 2u] = pack2x16float(vec2<f32>(scale[i], scale[i + 1u]));
    }
  }
  put_zeros(first, zero);
}

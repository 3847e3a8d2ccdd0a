// A scale and a zero point for each row of x, asymmetric, with zero exactly representable:
//   low = min(row, 0), high = max(row, 0), scale = max((high − low) / (qmax − qmin), eps),
//   zero = clamp(qmin − round(low / scale), qmin, qmax).
// A workgroup takes four rows, 64 threads each, because four zero points make a word.
// uses: grid divide
const WG = 256u;
struct Params {
  m: u32,
  k: u32,
  half: u32,  // scales of 2 bytes
  bytes: u32, // of a zero point: 1 or 4
  qmin: f32,
  qmax: f32,
  eps: f32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (m, k)
@group(0) @binding(1) var<storage, read_write> scales: array<u32>; // (m)
@group(0) @binding(2) var<storage, read_write> zeros: array<u32>;  // (m)
@group(0) @binding(3) var<uniform>             p: Params;
const RUN = 4096u; // loops are nested: one software device ends a loop after 65,535 turns
var<workgroup> ranges: array<vec2<f32>, WG>; // (-low, high)

fn range(m: u32, lane: u32) -> vec2<f32> {
  var found = vec2<f32>(0.0);
  for (var start = lane; start < p.k; start += RUN) {
    for (var k = start; k < min(start + RUN, p.k); k += 64u) {
      let i = m * p.k + k;
      let v = elem_get(x[i / ELEMS], i % ELEMS);
      found = max(found, vec2<f32>(-v, v));
    }
  }
  return found;
}

// What 2 bytes keep of a positive number. Not unpack of pack: a driver dropped that pair.
fn half_of(v: f32) -> f32 {
  let bits = bitcast<u32>(v);
  let normal = bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & ~0x1fffu);
  return select(normal, round(v * 16777216.0) / 16777216.0, v < 6.1035156e-5);
}

// Scale and zero point of the row whose range ended up in the first of its 64 threads.
fn params_of(row: u32) -> vec2<f32> {
  let found = ranges[row * 64u];
  var scale = max(divide(found.x + found.y, p.qmax - p.qmin), p.eps);
  if (p.half == 1u) {
    scale = half_of(scale); // as readers will see it
  }
  let zero = clamp(p.qmin - round(divide(-found.x, scale)), p.qmin, p.qmax);
  return vec2<f32>(scale, zero);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = grid_group(group, groups) * 4u;
  let m = first + local / 64u;
  ranges[local] = range(min(m, p.m - 1u), local % 64u);
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
  var zero = vec4<i32>();
  for (var i = 0u; i < 4u; i++) {
    let found = params_of(i);
    scale[i] = found.x;
    zero[i] = i32(found.y);
  }
  for (var i = 0u; i < 4u && first + i < p.m; i++) {
    if (p.half == 0u) {
      scales[first + i] = bitcast<u32>(scale[i]);
    } else if (i % 2u == 0u) {
      scales[(first + i) / 2u] = pack2x16float(vec2<f32>(scale[i], scale[i + 1u]));
    }
    if (p.bytes == 4u) {
      zeros[first + i] = u32(zero[i]);
    }
  }
  if (p.bytes == 1u) {
    zeros[first / 4u] = dot(vec4<u32>(zero) & vec4<u32>(255u), vec4<u32>(1u, 256u, 65536u, 16777216u));
  }
}

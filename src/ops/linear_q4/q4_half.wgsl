// Rows of x as f16 for q4_matrix: divided by a power of two, so that the largest of a row is below
// 2^14 whatever it was and 28 bits of range are left below it; `factors` multiply back. Eights are in
// the order 0 4 1 5 2 6 3 7, as codes come out of a word; rows are padded to a multiple of 64.
// One workgroup per row.
// NORM: x is divided by its root mean square and multiplied by `weight` first.
// uses: grid q4_params
alias Reduced = f32;
const WG = 256u;
const NORM = false;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;             // (m, k)
@group(0) @binding(1) var<storage, read>       weight: array<Quad>;        // (k)
@group(0) @binding(2) var<storage, read_write> halves: array<vec4<u32>>;   // (m, k padded)
@group(0) @binding(3) var<storage, read_write> factors: array<f32>;        // (m)
@group(0) @binding(4) var<uniform>             p: Params;

fn value(at: u32, i: u32) -> vec4<f32> {
  if (NORM) {
    return quad_get(x[at + i]) * quad_get(weight[i]);
  }
  return quad_get(x[at + i]);
}

// The exponent of a positive float, kept where 2^(e - 13) and its inverse are normal numbers. One
// that is not finite stays what it is in f16.
fn exponent(v: f32) -> u32 { return clamp(bitcast<u32>(v) >> 23u, 20u, 250u); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let m = min(grid_group(group, groups), p.m - 1u);
  let quads = p.k / 4u;
  let at = m * quads;
  var most = 0.0;
  var squares = 0.0;
  for (var i = local; i < quads; i += WG) {
    let v = abs(value(at, i));
    most = max(most, max(max(v.x, v.y), max(v.z, v.w)));
    if (NORM) {
      let own = quad_get(x[at + i]);
      squares += dot(own, own);
    }
  }
  var norm = 1.0;
  if (NORM) {
    norm = inverseSqrt(group_add(squares, local) / f32(p.k) + p.eps);
  }
  let e = exponent(group_max(most, local) * norm);
  let inverse = norm * bitcast<f32>((267u - e) << 23u); // 2^(13 - (e - 127))
  let units = (p.k + 63u) / 64u * 8u;
  for (var i = local; i < units; i += WG) {
    var a = vec4<f32>();
    var b = vec4<f32>();
    if (i * 2u < quads) {
      a = value(at, i * 2u) * inverse;
      b = value(at, i * 2u + 1u) * inverse;
    }
    halves[m * units + i] =
      vec4<u32>(pack2x16float(vec2<f32>(a.x, b.x)), pack2x16float(vec2<f32>(a.y, b.y)),
                pack2x16float(vec2<f32>(a.z, b.z)), pack2x16float(vec2<f32>(a.w, b.w)));
  }
  if (local == 0u) {
    factors[m] = bitcast<f32>((e - 13u) << 23u);
  }
}

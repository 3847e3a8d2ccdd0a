// y = f(a, b), elementwise with right-aligned broadcasting.  One thread per output word.
// uses: grid elem_f32
override WG: u32 = 64u;
const OP = 0u; // 0 add, 1 sub, 2 mul
struct Params {
  n: u32,              // output elements
  rank: u32,
  alpha: f32,
  pad0: u32,
  dims: array<vec4<u32>, 2>,     // of y, outermost first
  stride_a: array<vec4<u32>, 2>, // elements; 0 where a is broadcast
  stride_b: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       a: array<u32>;
@group(0) @binding(1) var<storage, read>       b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform>             p: Params;

fn apply(u: Elem, v: Elem) -> Elem {
  if (OP == 0u) { return u + Elem(p.alpha) * v; }
  if (OP == 1u) { return u - Elem(p.alpha) * v; }
  return u * v;
}

fn one(e: u32) -> Elem {
  var rest = e;
  var ia = 0u;
  var ib = 0u;
  for (var d = p.rank; d > 0u; d--) {
    let size = p.dims[(d - 1u) / 4u][(d - 1u) % 4u];
    let c = rest % size;
    rest /= size;
    ia += c * p.stride_a[(d - 1u) / 4u][(d - 1u) % 4u];
    ib += c * p.stride_b[(d - 1u) / 4u][(d - 1u) % 4u];
  }
  return apply(elem_get(a[ia / ELEMS], ia % ELEMS), elem_get(b[ib / ELEMS], ib % ELEMS));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS && word * ELEMS + lane < p.n; lane++) {
    packed = elem_put(packed, lane, one(word * ELEMS + lane));
  }
  y[word] = packed;
}

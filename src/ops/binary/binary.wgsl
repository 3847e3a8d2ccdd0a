// y = f(a, b), elementwise over a loop nest in which operands may repeat (stride 0).
// One thread per four output elements. QUADS: the innermost loop runs over whole quads of y, and
// each operand either runs along (strides in quads) or stays (its one element serves all four);
// else every element has its own index. `apply` and Result come from a library of operations.
// uses: grid
override WG: u32 = 64u;
const QUADS = true;
struct Params {
  n: u32,       // output elements
  rank: u32,    // of the loop nest
  alpha: u32,   // bits of an element
  stays: u32,   // bit 0: a stays in the innermost loop; bit 1: b does
  dims: array<vec4<u32>, 2>,     // outermost first; with QUADS the innermost in quads
  stride_a: array<vec4<u32>, 2>,
  stride_b: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       a: array<Quad>;
@group(0) @binding(1) var<storage, read>       b: array<Quad>;
@group(0) @binding(2) var<storage, read_write> y: array<Result>;
@group(0) @binding(3) var<uniform>             p: Params;

// Where a and b are at step `e` of the nest.
fn locate(e: u32) -> vec2<u32> {
  var rest = e;
  var at = vec2<u32>();
  for (var d = p.rank - 1u; d > 0u; d--) {
    let size = p.dims[d / 4u][d % 4u];
    let c = rest % size;
    rest /= size;
    at += c * vec2<u32>(p.stride_a[d / 4u][d % 4u], p.stride_b[d / 4u][d % 4u]);
  }
  return at + rest * vec2<u32>(p.stride_a[0].x, p.stride_b[0].x);
}

fn one_a(i: u32) -> Elem4 { return Elem4(quad_get(a[i / 4u])[i % 4u]); }
fn one_b(i: u32) -> Elem4 { return Elem4(quad_get(b[i / 4u])[i % 4u]); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  var u: Elem4;
  var v: Elem4;
  if (QUADS) {
    let at = locate(i);
    if ((p.stays & 1u) != 0u) { u = one_a(at.x); } else { u = quad_get(a[at.x]); }
    if ((p.stays & 2u) != 0u) { v = one_b(at.y); } else { v = quad_get(b[at.y]); }
  } else {
    for (var k = 0u; k < 4u; k++) {
      let at = locate(min(i * 4u + k, p.n - 1u));
      u[k] = one_a(at.x).x;
      v[k] = one_b(at.y).x;
    }
  }
  y[i] = apply(u, v);
}

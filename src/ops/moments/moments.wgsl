// For each element of the result and each part of the elements of x over the reduced dims: their mean
// and the sum of their squared deviations from it.  GROUP: one workgroup for each, whose threads share
// the elements; else one thread.
// uses: grid group_tree
alias Reduced = f32;
const WG = 64u;
const GROUP = true;
struct Params {
  n: u32,     // results
  count: u32, // elements of x for each
  kept: u32,  // loops
  reduced: u32,
  parts: u32, // in which the elements for each are shared out,
  each: u32,  // so many elements in one
  unused: vec2<u32>,
  kept_dims: array<vec4<u32>, 2>, // outermost first, merged
  kept_stride: array<vec4<u32>, 2>,
  reduced_dims: array<vec4<u32>, 2>,
  reduced_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>; // (parts, n)
@group(0) @binding(2) var<uniform>             p: Params;

fn base_of(result: u32) -> u32 {
  var rest = result;
  var at = 0u;
  for (var d = p.kept; d > 0u; d--) {
    let size = p.kept_dims[(d - 1u) / 4u][(d - 1u) % 4u];
    at += rest % size * p.kept_stride[(d - 1u) / 4u][(d - 1u) % 4u];
    rest /= size;
  }
  return at;
}

fn element(base: u32, i: u32) -> f32 {
  var rest = i;
  var at = base;
  for (var d = p.reduced; d > 1u; d--) {
    let size = p.reduced_dims[(d - 1u) / 4u][(d - 1u) % 4u];
    at += rest % size * p.reduced_stride[(d - 1u) / 4u][(d - 1u) % 4u];
    rest /= size;
  }
  at += rest * p.reduced_stride[0].x;
  return elem_get(x[at / ELEMS], at % ELEMS);
}

// What one thread adds up of the elements, or of their squared distances from `middle`.
fn some(base: u32, first: u32, end: u32, step: u32, squares: bool, middle: f32) -> f32 {
  var sum = 0.0;
  for (var i = first; i < end; i += step) {
    let off = element(base, i) - middle;
    sum += select(off, off * off, squares);
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (GROUP) {
    if (g < p.n * p.parts) {
      let base = base_of(g % p.n);
      let first = g / p.n * p.each;
      let end = min(p.count, first + p.each);
      let middle = group_add(some(base, first + local, end, WG, false, 0.0), local) / f32(end - first);
      let squares = group_add(some(base, first + local, end, WG, true, middle), local);
      if (local == 0u) {
        stats[g] = vec2<f32>(middle, squares);
      }
    }
  } else {
    let item = g * WG + local;
    if (item < p.n * p.parts) {
      let base = base_of(item % p.n);
      let first = item / p.n * p.each;
      let end = min(p.count, first + p.each);
      let middle = some(base, first, end, 1u, false, 0.0) / f32(end - first);
      stats[item] = vec2<f32>(middle, some(base, first, end, 1u, true, middle));
    }
  }
}

// The elements of x that a reduction sees, and what one thread makes of some of them.
struct Params {
  numel: u32, // of y
  count: u32, // elements of x for each
  kept: u32,  // loops
  reduced: u32,
  scale: f32,
  parts: u32, // in which the elements for each are shared out,
  each: u32,  // so many elements in one
  unused: u32,
  kept_dims: array<vec4<u32>, 2>, // outermost first, merged
  kept_stride: array<vec4<u32>, 2>,
  reduced_dims: array<vec4<u32>, 2>,
  reduced_stride: array<vec4<u32>, 2>,
}

fn kept_base(e: u32) -> u32 {
  var rest = e;
  var at = 0u;
  for (var d = p.kept; d > 0u; d--) {
    let size = p.kept_dims[(d - 1u) / 4u][(d - 1u) % 4u];
    at += rest % size * p.kept_stride[(d - 1u) / 4u][(d - 1u) % 4u];
    rest /= size;
  }
  return at;
}

fn reduced_offset(i: u32) -> u32 {
  var rest = i;
  var at = 0u;
  for (var d = p.reduced; d > 1u; d--) {
    let size = p.reduced_dims[(d - 1u) / 4u][(d - 1u) % 4u];
    at += rest % size * p.reduced_stride[(d - 1u) / 4u][(d - 1u) % 4u];
    rest /= size;
  }
  return at + rest * p.reduced_stride[0].x;
}

// Every `step`th element from `first` on, up to `end`.
fn partial(base: u32, first: u32, end: u32, step: u32) -> Best {
  var best = nothing();
  for (var i = first; i < end; i += step) {
    let at = base + reduced_offset(i);
    best = combine(best, Best(elem_get(x[at / ELEMS], at % ELEMS), i));
  }
  return best;
}

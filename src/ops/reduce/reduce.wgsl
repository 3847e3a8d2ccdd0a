// y[c] = the sum, the product, the extremum or the place of the extremum of x over the reduced dims.
// GROUP: one workgroup per word of y, whose threads share the elements; else one thread per word.
// A sum of floats is multiplied by scale. A place is the index of the first of the largest, or of the smallest.
// A NaN is larger and smaller than any number, and the first one counts.
// uses: grid
override WG: u32 = 64u;
const SUMS = true;    // else the extremum
const PRODUCTS = false; // of the elements, instead of sums
const LARGEST = true; // else the smallest
const PLACES = false; // where the extremum is
const GROUP = true;
const FLOATS = true; // else integers, which have no NaN
const OUT = ELEMS;   // elements in a word of y
struct Params {
  numel: u32, // of y
  count: u32, // elements of x for each
  kept: u32,  // loops
  reduced: u32,
  scale: f32,
  pad0: u32,
  pad1: vec2<u32>,
  kept_dims: array<vec4<u32>, 2>, // outermost first, merged
  kept_stride: array<vec4<u32>, 2>,
  reduced_dims: array<vec4<u32>, 2>,
  reduced_stride: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

const NOTHING = 0xffffffffu;
struct Best {
  value: Elem,
  at: u32, // which of the reduced elements; NOTHING: none yet
}
var<workgroup> values: array<Elem, WG>;
var<workgroup> places: array<u32, WG>;

fn is_nan(v: Elem) -> bool { return FLOATS && (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }

fn better(a: Best, b: Best) -> bool {
  if (is_nan(a.value) || is_nan(b.value)) {
    return is_nan(a.value) && (!is_nan(b.value) || a.at < b.at);
  }
  if (a.value == b.value) {
    return a.at < b.at;
  }
  return (a.value > b.value) == LARGEST;
}

fn combine(a: Best, b: Best) -> Best {
  if (a.at == NOTHING) { return b; }
  if (b.at == NOTHING) { return a; }
  if (PRODUCTS) { return Best(a.value * b.value, 0u); }
  if (SUMS) { return Best(a.value + b.value, 0u); }
  if (better(b, a)) { return b; }
  return a;
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

// What one thread sees of the elements: every `step`th from `first` on.
fn partial(base: u32, first: u32, step: u32) -> Best {
  var best = Best(select(Elem(), Elem(1), PRODUCTS), NOTHING);
  for (var start = first; start < p.count; start += step * 4096u) { // some devices stop long loops
    let end = min(p.count, start + step * 4096u);
    for (var i = start; i < end; i += step) {
      let at = base + reduced_offset(i);
      best = combine(best, Best(elem_get(x[at / ELEMS], at % ELEMS), i));
    }
  }
  return best;
}

fn shared_best(mine: Best, local: u32) -> Best {
  workgroupBarrier(); // the last lane's values have been read
  values[local] = mine.value;
  places[local] = mine.at;
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local < half) {
      let best = combine(Best(values[local], places[local]),
                         Best(values[local + half], places[local + half]));
      values[local] = best.value;
      places[local] = best.at;
    }
  }
  workgroupBarrier();
  return Best(values[0], places[0]);
}

fn put(word: u32, lane: u32, best: Best) -> u32 {
  if (PLACES) {
    return best.at;
  }
  if (SUMS && FLOATS) {
    return elem_put(word, lane, Elem(f32(best.value) * p.scale));
  }
  return elem_put(word, lane, best.value);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  var packed = 0u;
  if (GROUP) {
    for (var lane = 0u; lane < OUT && g * OUT < p.numel; lane++) {
      let base = kept_base(min(g * OUT + lane, p.numel - 1u));
      packed = put(packed, lane, shared_best(partial(base, local, WG), local));
    }
    if (local == 0u && g * OUT < p.numel) {
      y[g] = packed;
    }
  } else {
    let word = g * WG + local;
    for (var lane = 0u; lane < OUT && word * OUT < p.numel; lane++) {
      let base = kept_base(min(word * OUT + lane, p.numel - 1u));
      packed = put(packed, lane, partial(base, 0u, 1u));
    }
    if (word * OUT < p.numel) {
      y[word] = packed;
    }
  }
}

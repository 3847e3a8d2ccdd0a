// What reductions combine: a value and, of an extremum, which of the reduced elements has it.
// A NaN is larger and smaller than any number, and the first one counts.
const SUMS = true;    // else the extremum
const PRODUCTS = false; // of the elements, instead of sums
const LARGEST = true; // else the smallest
const PLACES = false; // where the extremum is
const FLOATS = true; // else integers, which have no NaN
const OUT = ELEMS;   // elements in a word of y

const NOTHING = 0xffffffffu;
struct Best {
  value: Elem,
  at: u32, // NOTHING: none yet
}
var<workgroup> values: array<Elem, WG>;
var<workgroup> places: array<u32, WG>;

fn nothing() -> Best { return Best(select(Elem(), Elem(1), PRODUCTS), NOTHING); }

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

// A sum of floats is multiplied by scale. A place is the index of the extremum.
fn put(word: u32, lane: u32, best: Best) -> u32 {
  if (PLACES) {
    return best.at;
  }
  if (SUMS && FLOATS) {
    return elem_put(word, lane, Elem(f32(best.value) * p.scale));
  }
  return elem_put(word, lane, best.value);
}

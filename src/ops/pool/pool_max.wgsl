// Pooling: the largest element and its place in the plane, the first of equals. A NaN is larger than
// any number, and the last one counts, as in PyTorch.
const LOWEST = 0xff800000u; // bits of what is smaller than any element
struct Pooled {
  value: Elem,
  at: u32,
}
var<private> lowest: u32 = LOWEST; // compilers refuse infinities that they can see

fn pool_is_nan(v: Elem) -> bool {
  return LOWEST == 0xff800000u && (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u;
}
fn pool_begin(first: u32) -> Pooled { return Pooled(bitcast<Elem>(lowest), first); }
fn pool_add(a: Pooled, v: Elem, at: u32, divisor: i32) -> Pooled {
  if (pool_is_nan(v) || (v > a.value && !pool_is_nan(a.value))) {
    return Pooled(v, at);
  }
  return a;
}
fn pool_join(a: Pooled, b: Pooled) -> Pooled {
  if (pool_is_nan(a.value) || pool_is_nan(b.value)) {
    if (pool_is_nan(a.value) && (!pool_is_nan(b.value) || a.at > b.at)) { return a; }
    return b;
  }
  if (a.value > b.value || (a.value == b.value && a.at <= b.at)) { return a; }
  return b;
}
fn pool_value(a: Pooled, divisor: i32) -> Elem { return a.value; }

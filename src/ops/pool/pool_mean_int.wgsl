// Pooling: the mean of integers, cut towards zero. Their sum may need more than 32 bits, so quotients
// and remainders are added apart: sum = quotients * divisor + rests.
struct Pooled {
  value: i32, // quotients
  rest: i32,
}
fn pool_begin(first: u32) -> Pooled { return Pooled(0, 0); }
// Vulkan leaves the remainder of a negative number open, and NVIDIA's is another one.
fn remainder(v: i32, divisor: i32) -> i32 { return v - v / divisor * divisor; }
fn pool_settle(value: i32, rest: i32, divisor: i32) -> Pooled {
  return Pooled(value + rest / divisor, remainder(rest, divisor));
}
fn pool_add(a: Pooled, v: i32, at: u32, divisor: i32) -> Pooled {
  return pool_settle(a.value + v / divisor, a.rest + remainder(v, divisor), divisor);
}
fn pool_join(a: Pooled, b: Pooled) -> Pooled {
  return Pooled(a.value + b.value, a.rest + b.rest); // at most WG rests
}
fn pool_value(a: Pooled, divisor: i32) -> i32 {
  if (divisor == 0) { return 0; } // a window outside x
  let all = pool_settle(a.value, a.rest, divisor);
  let part = select(all.rest, -all.rest, divisor < 0);
  if (all.value > 0 && part < 0) { return all.value - 1; }
  if (all.value < 0 && part > 0) { return all.value + 1; }
  return all.value;
}

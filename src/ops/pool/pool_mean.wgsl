// Pooling: the mean of floats.
struct Pooled {
  value: f32,
}
fn pool_begin(first: u32) -> Pooled { return Pooled(0.0); }
fn pool_add(a: Pooled, v: f32, at: u32, divisor: i32) -> Pooled { return Pooled(a.value + v); }
fn pool_join(a: Pooled, b: Pooled) -> Pooled { return Pooled(a.value + b.value); }
fn pool_value(a: Pooled, divisor: i32) -> f32 {
  return select(a.value / f32(divisor), 0.0, divisor == 0); // a window outside x
}

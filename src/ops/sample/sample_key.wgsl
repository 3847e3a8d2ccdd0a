// A logit's key: an integer of the same order, so that no device's floats decide what is equal.
// NaN is -inf, -0 is 0. Every key is above 0. Logits whose quotients by the temperature would round
// to the same number stay in their own order.
const KEY_NOTHING = 0x007fffffu; // of -inf
fn key_of(logit: f32) -> u32 {
  let bits = bitcast<u32>(logit);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return KEY_NOTHING;
  }
  if (bits > 0x80000000u) {
    return ~bits;
  }
  return (bits & 0x7fffffffu) | 0x80000000u;
}
fn logit_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}

// Up to four results from element `at` on, as bytes. Words that others write too keep their other
// bytes: a byte has one writer, who clears its bits and sets them.
alias Out = atomic<u32>;
fn q8_replace(word: u32, mask: u32, bits: u32) {
  atomicAnd(&y[word], ~mask);
  atomicOr(&y[word], bits & mask);
}
fn q8_put(at: u32, count: u32, v: vec4<f32>) {
  let bits = requant(v);
  let mask = 0xffffffffu >> (32u - 8u * count);
  let shift = 8u * (at % 4u);
  q8_replace(at / 4u, mask << shift, bits << shift);
  if (shift + 8u * count > 32u) {
    q8_replace(at / 4u + 1u, mask >> (32u - shift), bits >> (32u - shift));
  }
}

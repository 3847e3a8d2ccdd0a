// Four neighbouring logits at any place, word by word; elem_get is a row's. What lies behind the
// last one is any of them. The shader says x: Logits and Params p with first and n.
alias Logits = array<u32>;
fn logit_at(i: u32) -> f32 {
  let e = min(i, p.first + p.n - 1u);
  return elem_get(x[e / ELEMS], e % ELEMS);
}
fn logits_get(i: u32) -> vec4<f32> {
  return vec4<f32>(logit_at(i), logit_at(i + 1u), logit_at(i + 2u), logit_at(i + 3u));
}

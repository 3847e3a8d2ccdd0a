// q4_rows with one row a set.
const R = 1u;
alias Sums = f32;
struct Loaded { q: vec4<u32>, s: f32 }
fn load(r: Rows, u: u32) -> Loaded { return Loaded(w[r.w0 + u], scale(r.s0 + (u >> r.shift))); }
fn multiply(sums: Sums, f: Loaded, slot: u32) -> Sums {
  let at = slot * 8u;
  let key = slot & 7u;
  var t = add_word(vec4<f32>(), f.q.x, xs[at + key], xs[at + (1u ^ key)]);
  t = add_word(t, f.q.y, xs[at + (2u ^ key)], xs[at + (3u ^ key)]);
  t = add_word(t, f.q.z, xs[at + (4u ^ key)], xs[at + (5u ^ key)]);
  t = add_word(t, f.q.w, xs[at + (6u ^ key)], xs[at + (7u ^ key)]);
  return fma(f.s, dot(t, vec4<f32>(1.0)), sums);
}
fn sum_of(sums: Sums, i: u32) -> f32 { return sums; }

// One unit of each of four rows, and what they add to four sums.
struct Four { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>, s: vec4<f32> }

fn four_load(w_at: vec4<u32>, s_at: vec4<u32>) -> Four {
  return Four(w[w_at.x], w[w_at.y], w[w_at.z], w[w_at.w],
              vec4<f32>(scale(s_at.x), scale(s_at.y), scale(s_at.z), scale(s_at.w)));
}

struct FourSums { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }
fn four_words(t: FourSums, q: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> FourSums {
  return FourSums(add_word(t.a, q.x, low, high), add_word(t.b, q.y, low, high),
                  add_word(t.c, q.z, low, high), add_word(t.d, q.w, low, high));
}

// slot: the unit's place in xs.
fn four_add(sum: vec4<f32>, f: Four, slot: u32) -> vec4<f32> {
  let at = slot * 8u;
  let key = slot & 7u;
  var t = FourSums();
  t = four_words(t, vec4<u32>(f.a.x, f.b.x, f.c.x, f.d.x), xs[at + key], xs[at + (1u ^ key)]);
  t = four_words(t, vec4<u32>(f.a.y, f.b.y, f.c.y, f.d.y), xs[at + (2u ^ key)], xs[at + (3u ^ key)]);
  t = four_words(t, vec4<u32>(f.a.z, f.b.z, f.c.z, f.d.z), xs[at + (4u ^ key)], xs[at + (5u ^ key)]);
  t = four_words(t, vec4<u32>(f.a.w, f.b.w, f.c.w, f.d.w), xs[at + (6u ^ key)], xs[at + (7u ^ key)]);
  let one = vec4<f32>(1.0);
  return fma(f.s, vec4<f32>(dot(t.a, one), dot(t.b, one), dot(t.c, one), dot(t.d, one)), sum);
}

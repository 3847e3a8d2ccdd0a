// One unit of each of four rows, and what they add to four sums.
struct Four { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>, s: vec4<f32> }

fn four_load(w_at: vec4<u32>, s_at: vec4<u32>) -> Four {
  return Four(w[w_at.x], w[w_at.y], w[w_at.z], w[w_at.w],
              vec4<f32>(scale(s_at.x), scale(s_at.y), scale(s_at.z), scale(s_at.w)));
}
fn four_add(sum: vec4<f32>, f: Four, slot: u32) -> vec4<f32> {
  return fma(f.s, vec4<f32>(unit_dot(f.a, slot), unit_dot(f.b, slot), unit_dot(f.c, slot),
                            unit_dot(f.d, slot)), sum);
}

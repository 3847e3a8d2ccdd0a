// Where the rows of a weight are that one set of threads takes, and units of four of them. The
// kernel binds w (units) and scales (words).
fn scale(at: u32) -> f32 {
  return elem_get(scales[at / ELEMS], at % ELEMS);
}

// Where a set's rows are: the first half of them from unit w0 and scale s0 on, the second half from
// w1 and s1 on; a row has `units` units and `groups` scales, unit >> shift is a unit's scale.
struct Rows { w0: u32, w1: u32, s0: u32, s1: u32, units: u32, groups: u32, shift: u32 }

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

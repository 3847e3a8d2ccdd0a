// q4_rows with x as bytes (q4_bytes) in workgroup memory. Wants T · U a multiple of 64.

// Word w of unit u is at 4u + (w ^ u / 2 % 4), so that neighbours never meet in a bank.
var<workgroup> xs: array<vec4<u32>, STAGED * 4u>;
var<workgroup> x_lows: array<vec2<u32>, STAGED * 4u>;
var<workgroup> x_abouts: array<vec4<i32>, STAGED>;

fn stage(m: u32, unit: u32, units: u32, local: u32) {
  for (var turn = 0u; turn < STAGED * 4u / WG; turn++) {
    let i = turn * WG + local;
    let u = i / 4u;
    var a = vec4<f32>(0.0);
    var b = vec4<f32>(0.0);
    if (unit + u < units) {
      a = staged(m, (unit * 4u + i) * 2u);
      b = staged(m, (unit * 4u + i) * 2u + 1u);
    }
    let eight = eight_of(a, b, 4u);
    let at = u * 4u + ((i ^ (u >> 1u)) & 3u);
    xs[at] = eight.x;
    x_lows[at] = eight.low;
    if (i % 4u == 0u) {
      x_abouts[u] = eight.about;
    }
  }
}

// Codes of one unit times x; slot: the unit's place in xs.
fn unit_dot(q: vec4<u32>, slot: u32) -> f32 {
  let at = slot * 4u;
  let key = (slot >> 1u) & 3u;
  var t = add_word(Bytes(0, 0, 0), q.x, xs[at + key], x_lows[at + key]);
  t = add_word(t, q.y, xs[at + (1u ^ key)], x_lows[at + (1u ^ key)]);
  t = add_word(t, q.z, xs[at + (2u ^ key)], x_lows[at + (2u ^ key)]);
  t = add_word(t, q.w, xs[at + (3u ^ key)], x_lows[at + (3u ^ key)]);
  return sum_of_words(t, x_abouts[slot]);
}

// x of q4_rows in f32: wants q4_codes.
// Quad j of unit u at 8u + (j ^ u % 8), so that neighbours never meet in a bank.
var<workgroup> xs: array<vec4<f32>, STAGED * 8u>;

fn stage(m: u32, unit: u32, units: u32, local: u32) {
  for (var turn = 0u; turn < (STAGED * 8u + WG - 1u) / WG; turn++) { // so many that it is unrolled
    let i = turn * WG + local;
    let u = i / 8u;
    var v = vec4<f32>(0.0);
    if (u < STAGED && unit + u < units) { // staged() must see each quad once
      v = staged(m, unit * 8u + i) * FACTOR;
    }
    if (STAGED * 8u % WG == 0u || i < STAGED * 8u) {
      xs[u * 8u + ((i ^ u) & 7u)] = v;
    }
  }
}

// Codes of one unit times x; slot: the unit's place in xs.
fn unit_dot(q: vec4<u32>, slot: u32) -> f32 {
  let at = slot * 8u;
  let key = slot & 7u;
  var t = add_word(vec4<f32>(), q.x, xs[at + key], xs[at + (1u ^ key)]);
  t = add_word(t, q.y, xs[at + (2u ^ key)], xs[at + (3u ^ key)]);
  t = add_word(t, q.z, xs[at + (4u ^ key)], xs[at + (5u ^ key)]);
  t = add_word(t, q.w, xs[at + (6u ^ key)], xs[at + (7u ^ key)]);
  return dot(t, vec4<f32>(1.0));
}

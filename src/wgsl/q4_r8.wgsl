// q4_rows with eight rows a set: wants q4_four.
const R = 8u;
struct Sums { a: vec4<f32>, b: vec4<f32> }
struct Loaded { a: Four, b: Four }
fn load(r: Rows, u: u32) -> Loaded {
  let g = u >> r.shift;
  let steps = vec4<u32>(0u, 1u, 2u, 3u);
  return Loaded(four_load(r.w0 + u + steps * r.units, r.s0 + g + steps * r.groups),
                four_load(r.w1 + u + steps * r.units, r.s1 + g + steps * r.groups));
}
fn multiply(sums: Sums, f: Loaded, slot: u32) -> Sums {
  return Sums(four_add(sums.a, f.a, slot), four_add(sums.b, f.b, slot));
}

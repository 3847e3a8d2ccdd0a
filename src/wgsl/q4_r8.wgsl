// q4_rows with eight rows a set: wants q4_four.
const R = 8u;
struct Sums { low: vec4<f32>, high: vec4<f32> }
struct Loaded { low: Four, high: Four }
fn load(r: Rows, u: u32) -> Loaded {
  let g = u >> r.shift;
  let steps = vec4<u32>(0u, 1u, 2u, 3u);
  return Loaded(four_load(r.w0 + steps * r.units + u, r.s0 + steps * r.groups + g),
                four_load(r.w1 + steps * r.units + u, r.s1 + steps * r.groups + g));
}
fn multiply(sums: Sums, f: Loaded, slot: u32) -> Sums {
  return Sums(four_add(sums.low, f.low, slot), four_add(sums.high, f.high, slot));
}
fn sum_of(sums: Sums, i: u32) -> f32 { return select(sums.low[i & 3u], sums.high[i & 3u], i > 3u); }

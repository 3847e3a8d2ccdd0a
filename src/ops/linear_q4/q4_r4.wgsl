// q4_rows with four rows a set: wants q4_four.
const R = 4u;
alias Sums = vec4<f32>;
alias Loaded = Four;
fn load(r: Rows, u: u32) -> Loaded {
  let g = u >> r.shift;
  return four_load(vec4<u32>(r.w0, r.w0 + r.units, r.w1, r.w1 + r.units) + u,
                   vec4<u32>(r.s0, r.s0 + r.groups, r.s1, r.s1 + r.groups) + g);
}
fn multiply(sums: Sums, f: Loaded, slot: u32) -> Sums { return four_add(sums, f, slot); }
fn sum_of(sums: Sums, i: u32) -> f32 { return sums[i]; }

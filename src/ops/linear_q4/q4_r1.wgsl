// q4_rows with one row a set.
const R = 1u;
alias Sums = f32;
struct Loaded { q: vec4<u32>, s: f32 }
fn load(r: Rows, u: u32) -> Loaded { return Loaded(w[r.w0 + u], scale(r.s0 + (u >> r.shift))); }
fn multiply(sums: Sums, f: Loaded, slot: u32) -> Sums { return fma(f.s, unit_dot(f.q, slot), sums); }
fn sum_of(sums: Sums, i: u32) -> f32 { return sums; }

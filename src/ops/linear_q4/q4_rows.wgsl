// q4_rows for sets of many threads: a thread takes every T-th unit; all sets use the same x, staged
// T · U units at a time. q4_f32 and q4_i24 say in what numbers x is staged and multiplied.
const STAGED = T * U; // units

fn unit_of(rows: Rows, unit: u32, i: u32, local: u32) -> u32 {
  return min(unit + i * T + local % T, rows.units - 1u); // past the end x is 0
}

// A thread's own sums. `fresh`: x is not staged yet. Uniform control flow only, hence `units` beside
// rows.units.
fn q4_rows(m: u32, rows: Rows, units: u32, fresh: bool, local: u32) -> Sums {
  var sums = Sums();
  for (var unit = 0u; unit < units; unit += STAGED) {
    let u0 = unit_of(rows, unit, 0u, local);
    let u1 = unit_of(rows, unit, U - 1u, local);
    let first = load(rows, u0); // on their way while x is staged
    var second = first;
    if (U > 1u) {
      second = load(rows, u1);
    }
    if (fresh || units > STAGED) {
      workgroupBarrier();
      stage(m, unit, units, local);
      workgroupBarrier();
    }
    sums = multiply(sums, first, local % T);
    if (U > 1u) {
      sums = multiply(sums, second, T + local % T);
    }
  }
  return sums;
}

// R rows of a 4-bit weight times one row of x, by T threads: a thread takes every T-th unit, 32
// codes of a row in one load of 16 bytes. A workgroup has SETS of T threads; all use the same x,
// staged T · U units at a time. The kernel says const WG, T and U, binds w (units) and scales
// (words), and gives quad `at` of x as `fn staged(m, at) -> vec4<f32>`, called once for each quad.
// Other libraries say in what numbers x is staged and multiplied (q4_f32, q4_i24), how many rows a
// set has (q4_r1, q4_r4), and how its threads' sums become one (sums_shuffle, sums_memory).
const SETS = WG / T;
const STAGED = T * U; // units

fn scale(at: u32) -> f32 {
  return elem_get(scales[at / ELEMS], at % ELEMS);
}

// Where a set's rows are: the first half of them from unit w0 and scale s0 on, the second half from
// w1 and s1 on; a row has `units` units and `groups` scales, unit >> shift is a unit's scale.
struct Rows { w0: u32, w1: u32, s0: u32, s1: u32, units: u32, groups: u32, shift: u32 }

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

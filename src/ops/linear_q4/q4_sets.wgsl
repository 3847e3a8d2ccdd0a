// R rows of a 4-bit weight times one row of x, by a set of T threads; a workgroup has SETS of them. The
// kernel says const WG, T and U, binds w in units (32 codes of a row, 16 bytes) and scales in words, and
// gives quad `at` of x as `fn staged(m, at) -> vec4<f32>`, which is called once for each quad of a block.
// Other libraries give q4_rows, a thread's sums, and make them one: either q4_rows with sums_shuffle or
// sums_memory, whose sets share x through workgroup memory, or q4_serial. How many rows a set has is said
// by q4_r1 or q4_r4.
const SETS = WG / T;

fn scale(at: u32) -> f32 {
  return elem_get(scales[at / ELEMS], at % ELEMS);
}

// Where a set's rows are: the first half of them from unit w0 and scale s0 on, the second half from
// w1 and s1 on; a row has `units` units and `groups` scales, unit >> shift is a unit's scale.
struct Rows { w0: u32, w1: u32, s0: u32, s1: u32, units: u32, groups: u32, shift: u32 }

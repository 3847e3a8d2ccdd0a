// Four rows of a 4-bit weight times one row of x. L threads share the rows: a thread reads every
// L-th unit of them, 32 codes in one load of 16 bytes. The kernel says const WG and const L, binds w
// (units) and scales (words), and gives quad `at` of x as `fn staged(m, at) -> vec4<f32>`, which is
// called once for each quad by one of the threads.
// L units of x; quad j of unit u at 8u + (j ^ u % 8), so that neighbours never meet in a bank.
var<workgroup> xs: array<vec4<f32>, L * 8u>;

// A nibble in place, under the exponent of 2^23, is the number 2^23 + 16^i · code: subtracting
// leaves 16^i · (code − 8) exactly, and x carries the factor 16^-i.
const MASK = vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u);
const EXPONENT = vec4<u32>(0x4b000000u);
const OFFSET = vec4<f32>(8388616.0, 8388736.0, 8390656.0, 8421376.0);
const FACTOR = vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);

fn add_word(sum: vec4<f32>, q: u32, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
  let a = bitcast<vec4<f32>>((vec4<u32>(q) & MASK) | EXPONENT) - OFFSET;
  let b = bitcast<vec4<f32>>((vec4<u32>(q >> 16u) & MASK) | EXPONENT) - OFFSET;
  return fma(b, high, fma(a, low, sum));
}

// One word of each of the four rows.
struct Sums { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }
fn add_column(t: Sums, q: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> Sums {
  return Sums(add_word(t.a, q.x, low, high), add_word(t.b, q.y, low, high),
              add_word(t.c, q.z, low, high), add_word(t.d, q.w, low, high));
}

fn stage(m: u32, unit: u32, units: u32, local: u32) {
  for (var i = local; i < L * 8u; i += WG) {
    let u = i / 8u;
    var v = vec4<f32>(0.0);
    if (unit + u < units) {
      v = staged(m, unit * 8u + i) * FACTOR;
    }
    xs[u * 8u + ((i ^ u) & 7u)] = v;
  }
}

fn scale(at: u32) -> f32 {
  return elem_get(scales[at / ELEMS], at % ELEMS);
}

// Sums valid in the first of the L threads. w_at: first units of the rows, s_at: their first scales;
// unit >> shift is a unit's group. `fresh`: x is not staged yet. Uniform control flow only.
fn q4_rows(m: u32, w_at: vec4<u32>, s_at: vec4<u32>, units: u32, shift: u32, fresh: bool,
           local: u32) -> vec4<f32> {
  let lane = local % L;
  var sum = vec4<f32>(0.0);
  for (var unit = 0u; unit < units; unit += L) {
    let u = min(unit + lane, units - 1u); // past the end x is 0
    let q0 = w[w_at.x + u]; // on their way while x is staged
    let q1 = w[w_at.y + u];
    let q2 = w[w_at.z + u];
    let q3 = w[w_at.w + u];
    let g = s_at + vec4<u32>(u >> shift);
    let s = vec4<f32>(scale(g.x), scale(g.y), scale(g.z), scale(g.w));
    if (fresh || units > L) {
      workgroupBarrier();
      stage(m, unit, units, local);
      workgroupBarrier();
    }
    let at = lane * 8u;
    let key = lane & 7u;
    var d = Sums();
    d = add_column(d, vec4<u32>(q0.x, q1.x, q2.x, q3.x), xs[at + key], xs[at + (1u ^ key)]);
    d = add_column(d, vec4<u32>(q0.y, q1.y, q2.y, q3.y), xs[at + (2u ^ key)], xs[at + (3u ^ key)]);
    d = add_column(d, vec4<u32>(q0.z, q1.z, q2.z, q3.z), xs[at + (4u ^ key)], xs[at + (5u ^ key)]);
    d = add_column(d, vec4<u32>(q0.w, q1.w, q2.w, q3.w), xs[at + (6u ^ key)], xs[at + (7u ^ key)]);
    let one = vec4<f32>(1.0);
    sum = fma(s, vec4<f32>(dot(d.a, one), dot(d.b, one), dot(d.c, one), dot(d.d, one)), sum);
  }
  return lanes_sum(sum, local);
}

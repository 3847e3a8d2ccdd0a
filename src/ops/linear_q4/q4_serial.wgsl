// q4_rows by sets of one thread (T is 1), without workgroup memory and barriers: on a software device
// threads take turns, and a barrier costs more than what sharing x saves. Wants q4_codes.
// A thread asks for no sums but its own: the kernel's WORDS are all those of its R rows.
var<private> own: Sums;
var<private> own_squares: f32;
struct Unit { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, e: vec4<f32>, f: vec4<f32>, g: vec4<f32>, h: vec4<f32> }
var<private> xs: Unit; // of x

fn unit_dot(q: vec4<u32>, slot: u32) -> f32 {
  var t = add_word(vec4<f32>(), q.x, xs.a, xs.b);
  t = add_word(t, q.y, xs.c, xs.d);
  t = add_word(t, q.z, xs.e, xs.f);
  t = add_word(t, q.w, xs.g, xs.h);
  return dot(t, vec4<f32>(1.0));
}
fn quad_of(m: u32, at: u32) -> vec4<f32> { return staged(m, at) * FACTOR; }

fn q4_rows(m: u32, rows: Rows, units: u32, fresh: bool, local: u32) -> Sums {
  var sums = Sums();
  for (var unit = 0u; unit < units; unit++) {
    let i = unit * 8u;
    xs = Unit(quad_of(m, i), quad_of(m, i + 1u), quad_of(m, i + 2u), quad_of(m, i + 3u), quad_of(m, i + 4u),
              quad_of(m, i + 5u), quad_of(m, i + 6u), quad_of(m, i + 7u));
    sums = multiply(sums, load(rows, unit), 0u);
  }
  return sums;
}

fn sums_barrier() {}
fn sums_put(sums: Sums, local: u32) { own = sums; }
fn sums_total(i: u32) -> f32 { return sum_of(own, i % R); }
fn squares_put(value: f32, local: u32) { own_squares = value; }
fn squares_total(local: u32) -> f32 { return own_squares; }

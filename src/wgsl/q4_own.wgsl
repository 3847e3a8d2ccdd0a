// A unit of x as bytes (q4_bytes) in a thread's registers, from where glu_bytes put it.
struct Unit {
  x0: vec4<u32>,
  x1: vec4<u32>,
  x2: vec4<u32>,
  x3: vec4<u32>,
  low01: vec4<u32>,
  low23: vec4<u32>,
  about01: vec4<u32>,
  about23: vec4<u32>,
}
var<private> own: Unit;

fn own_load(u: u32, units: u32) {
  own = Unit(x[u], x[units + u], x[2u * units + u], x[3u * units + u], x[4u * units + u],
             x[5u * units + u], x[6u * units + u], x[7u * units + u]);
}
fn unit_dot(q: vec4<u32>, slot: u32) -> f32 {
  let t0 = add_word(Bytes(0, 0, 0), q.x, own.x0, own.low01.xy);
  let t1 = add_word(t0, q.y, own.x1, own.low01.zw);
  let t2 = add_word(Bytes(0, 0, 0), q.z, own.x2, own.low23.xy);
  let t3 = add_word(t2, q.w, own.x3, own.low23.zw);
  return sum_of_words(t1, bitcast<vec4<i32>>(own.about01)) + sum_of_words(t3, bitcast<vec4<i32>>(own.about23));
}

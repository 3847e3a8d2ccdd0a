// Pooling: the window of x that an element of y is made of. What is made of it (Pooled) comes from
// pool_max, pool_mean or pool_mean_int.
struct Params {
  n: u32,       // elements of y
  divisor: i32, // of means; 0: the number of elements
  include: u32, // 1: of which those count that lie in the padding
  dilated: u32, // 1: a dilation is not 1
  x_size: vec4<u32>, // depth, height, width
  y_size: vec4<u32>,
  kernel: vec4<u32>,
  stride: vec4<u32>,
  pad: vec4<u32>,
  dilation: vec4<u32>,
}

struct Window {
  plane: u32,       // of x
  first: vec3<u32>, // element inside x
  taps: vec3<u32>,  // elements inside x
  divisor: i32,
}

// An element of y, and the one behind it.
struct Place {
  plane: u32,
  o: vec3<u32>,
}
fn place_of(e: u32) -> Place {
  let row = e / p.y_size.z;
  let slice = row / p.y_size.y;
  return Place(slice / p.y_size.x, vec3<u32>(slice % p.y_size.x, row % p.y_size.y, e % p.y_size.z));
}
fn place_after(at: Place) -> Place {
  var next = at;
  next.o.z++;
  if (next.o.z == p.y_size.z) {
    next.o.z = 0u;
    next.o.y++;
  }
  if (next.o.y == p.y_size.y) {
    next.o.y = 0u;
    next.o.x++;
  }
  if (next.o.x == p.y_size.x) {
    next.o.x = 0u;
    next.plane++;
  }
  return next;
}

fn window_of(place: Place) -> Window {
  let size = p.x_size.xyz;
  let o = place.o;
  var w: Window;
  w.plane = place.plane;
  if (ADAPTIVE) { // windows of different sizes that cover x
    let out = p.y_size.xyz;
    w.first = o * size / out;
    w.taps = ((o + 1u) * size + out - 1u) / out - w.first;
    w.divisor = i32(w.taps.x * w.taps.y * w.taps.z);
    return w;
  }
  let at = o * p.stride.xyz; // counted from where the padding begins
  let step = p.dilation.xyz;
  var before = max(at, p.pad.xyz) - at; // taps in front of x
  var until = size + p.pad.xyz - at;
  if (p.dilated == 1u) {
    before = (before + step - 1u) / step;
    until = (until + step - 1u) / step;
  }
  until = min(until, p.kernel.xyz);
  w.first = at + before * step - p.pad.xyz;
  w.taps = max(until, before) - before;
  let padded = min(at + p.kernel.xyz, size + 2u * p.pad.xyz) - at;
  let counted = select(w.taps, padded, p.include == 1u);
  w.divisor = select(p.divisor, i32(counted.x * counted.y * counted.z), p.divisor == 0);
  return w;
}

fn place_in(c: vec3<u32>) -> u32 { return (c.x * p.x_size.y + c.y) * p.x_size.z + c.z; }

fn tap(w: Window, c: vec3<u32>) -> Elem {
  let e = w.plane * (p.x_size.x * p.x_size.y * p.x_size.z) + place_in(c);
  return elem_get(x[e / ELEMS], e % ELEMS);
}

// All of a window by one thread.
fn pool_all(w: Window) -> Pooled {
  var all = pool_begin(place_in(w.first));
  let step = select(p.dilation.xyz, vec3<u32>(1u), ADAPTIVE);
  for (var i = 0u; i < w.taps.x; i++) {
    for (var j = 0u; j < w.taps.y; j++) {
      for (var start = 0u; start < w.taps.z; start += 4096u) { // some devices stop long loops
        let to = min(w.taps.z, start + 4096u);
        for (var k = start; k < to; k++) {
          let c = w.first + vec3<u32>(i, j, k) * step;
          all = pool_add(all, tap(w, c), place_in(c), w.divisor);
        }
      }
    }
  }
  return all;
}


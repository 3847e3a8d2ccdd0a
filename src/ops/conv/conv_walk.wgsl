// The column of a pixel: what each tap of each input channel reads of x, taps outermost. A thread
// walks down it in strides, without dividing.
struct Walk {
  image: u32,           // where the pixel's image and group start in x
  origin: vec3<i32>,    // z, y, x of tap 0
  tap: vec3<i32>,       // z, y, x of this tap's number
  taps: u32,            // that were left behind
  channel: u32,
  at: u32,              // this tap in channel 0, if it is inside of x
  inside: bool,
}

// z, y and x of a pixel of an image.
fn pixel_at(q: u32) -> vec3<u32> {
  return vec3<u32>(q / p.grid_yx, q % p.grid_yx / p.grid_x, q % p.grid_x);
}

fn walk_look(w: ptr<function, Walk>) {
  let z = (*w).origin.x + (*w).tap.x * p.tap_z;
  let y = (*w).origin.y + (*w).tap.y * p.tap_y;
  let x = (*w).origin.z + (*w).tap.z * p.tap_x;
  (*w).inside = (*w).taps < p.taps && u32(z) < p.in_z && u32(y) < p.in_y && u32(x) < p.in_x;
  (*w).at = (*w).image + (u32(z) * p.in_y + u32(y)) * p.in_x + u32(x);
}

fn walk_on(w: ptr<function, Walk>, channels: u32) {
  (*w).channel += channels;
  if ((*w).channel < p.ic) {
    return;
  }
  while ((*w).channel >= p.ic && (*w).taps < p.taps) {
    (*w).channel -= p.ic;
    (*w).taps += 1u;
    (*w).tap.z += 1;
    if (u32((*w).tap.z) == p.taps_x) {
      (*w).tap.z = 0;
      (*w).tap.y += 1;
    }
    if (u32((*w).tap.y) == p.taps_y) {
      (*w).tap.y = 0;
      (*w).tap.x += 1;
    }
  }
  walk_look(w);
}

// The first of all taps, `channels` down. pixel: of all images; nothing is inside past the last.
fn walk_from(pixel: u32, group: u32, channels: u32) -> Walk {
  var w = Walk();
  let image = pixel / p.grid;
  let q = pixel_at(pixel % p.grid);
  w.image = image * p.in_image + group * p.ic * p.in_plane;
  w.origin = vec3<i32>(i32(q.x * p.step_z) + p.first_z, i32(q.y * p.step_y) + p.first_y,
                       i32(q.z * p.step_x) + p.first_x);
  w.taps = select(p.taps, 0u, pixel < p.pixels);
  walk_look(&w);
  walk_on(&w, channels);
  return w;
}

fn x_at(i: u32) -> f32 { return elem_get(x[i / ELEMS], i % ELEMS); }

fn walk_get(w: ptr<function, Walk>) -> f32 {
  if (!(*w).inside) {
    return 0.0;
  }
  return x_at((*w).at + (*w).channel * p.in_plane);
}

// Where w has a tap of a group, in channel 0.
fn tap_in_w(group: u32, tap: vec3<u32>) -> u32 {
  return p.w_first + group * p.w_group + tap.x * p.w_z + tap.y * p.w_y + tap.z * p.w_x;
}

// y[c, q] = Σ_t w[c, t] · x[c / oc, tap t at q]: each channel of x makes oc of y. A thread sums OUT
// neighbouring pixels in ROWS rows; threads side by side take pixels side by side.
// Wants one input channel a group, the grid that y has, rows of y that start on stores.
// uses: grid either conv_params conv_walk conv_put conv_end not_a_number
override WG: u32 = 64u;
const ROWS = 4u; // at most 4
const NINE = false; // 3 by 3 taps of a plane, written out: then their loads do not wait for each other
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read>       w: array<u32>;    // (all channels, taps)
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // (all channels)
@group(0) @binding(3) var<storage, read>       rest: array<Rest>; // as y
@group(0) @binding(4) var<storage, read_write> y: array<Out>;
@group(0) @binding(5) var<uniform>             p: Params;

// Pixel u of row v, whose slice of x starts at `slice`.
fn at_row(slice: u32, row: u32, v: i32, u: i32) -> f32 {
  if (row >= ROWS || u32(v) >= p.in_y || u32(u) >= p.in_x) {
    return 0.0;
  }
  let i = slice + u32(v) * p.in_x + u32(u);
  return elem_get(x[i / ELEMS], i % ELEMS);
}

// One tap of one pixel of each row.
fn rows_at(slice: u32, v: i32, u: i32) -> vec4<f32> {
  let s = i32(p.step_y);
  return vec4<f32>(at_row(slice, 0u, v, u), at_row(slice, 1u, v + s, u),
                   at_row(slice, 2u, v + 2 * s, u), at_row(slice, 3u, v + 3 * s, u));
}

// Three taps of a row, zeros outside.
struct Three { a: f32, b: f32, c: f32 }
fn at_place(plane: u32, v: i32, u: i32) -> f32 {
  let inside = u32(v) < p.in_y && u32(u) < p.in_x;
  let i = select(plane, plane + u32(v) * p.in_x + u32(u), inside);
  return select(0.0, elem_get(x[i / ELEMS], i % ELEMS), inside);
}
fn three(plane: u32, v: i32, u: i32) -> Three {
  return Three(at_place(plane, v, u), at_place(plane, v, u + p.tap_x), at_place(plane, v, u + 2 * p.tap_x));
}
fn dot3(w: Three, x: Three) -> f32 { return fma(w.a, x.a, fma(w.b, x.b, w.c * x.c)); }
fn weights3(i: u32) -> Three {
  return Three(elem_get(w[i / ELEMS], i % ELEMS), elem_get(w[(i + 1u) / ELEMS], (i + 1u) % ELEMS),
               elem_get(w[(i + 2u) / ELEMS], (i + 2u) % ELEMS));
}
fn nine(plane: u32, i: u32, v: i32, u: i32) -> f32 {
  let x0 = three(plane, v, u);
  let x1 = three(plane, v + p.tap_y, u);
  let x2 = three(plane, v + 2 * p.tap_y, u);
  return dot3(weights3(i), x0) + dot3(weights3(i + 3u), x1) + dot3(weights3(i + 6u), x2);
}
fn rows_of_nine(plane: u32, i: u32, v: i32, u: i32) -> vec4<f32> {
  let s = i32(p.step_y);
  if (ROWS == 1u) {
    return vec4<f32>(nine(plane, i, v, u), 0.0, 0.0, 0.0);
  }
  return vec4<f32>(nine(plane, i, v, u), nine(plane, i, v + s, u), nine(plane, i, v + 2 * s, u),
                   nine(plane, i, v + 3 * s, u));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups) * WG + local;
  let across = p.grid_x / OUT;
  let rows = p.grid_yx / p.grid_x;
  let down = (rows + ROWS - 1u) / ROWS;
  let channels = p.groups * p.oc;
  let q = vec3<u32>(index % across * OUT, index / across % down * ROWS,
                    index / (across * down) % (p.grid / p.grid_yx));
  let c = index / (across * down * (p.grid / p.grid_yx)) % channels;
  let image = index / (across * down * (p.grid / p.grid_yx) * channels);
  if (image * p.grid >= p.pixels) {
    return;
  }
  let plane = image * p.in_image + c / p.oc * p.in_plane;
  let first = vec3<i32>(i32(q.x * p.step_x) + p.first_x, i32(q.y * p.step_y) + p.first_y,
                        i32(q.z * p.step_z) + p.first_z);
  var i = (p.channel + c) * p.taps;
  var a = vec4<f32>(0.0);
  var b = vec4<f32>(0.0);
  if (NINE) {
    a = rows_of_nine(plane, i, first.y, first.x);
    if (OUT == 2u) {
      b = rows_of_nine(plane, i, first.y, first.x + i32(p.step_x));
    }
  }
  for (var z = first.z; !NINE && i < (p.channel + c + 1u) * p.taps; z += p.tap_z) {
    let slice = plane + u32(z) * p.in_y * p.in_x;
    for (var k = 0u; k < p.taps_y; k++) {
      let v = first.y + i32(k) * p.tap_y;
      for (var l = 0u; l < p.taps_x && u32(z) < p.in_z; l++) {
        let u = first.x + i32(l) * p.tap_x;
        let weight = vec4<f32>(elem_get(w[(i + l) / ELEMS], (i + l) % ELEMS));
        a = fma(weight, rows_at(slice, v, u), a);
        if (OUT == 2u) {
          b = fma(weight, rows_at(slice, v, u + i32(p.step_x)), b);
        }
      }
      i += p.taps_x;
    }
  }
  let pixel = image * p.grid + q.z * p.grid_yx + q.y * p.grid_x + q.x;
  for (var r = 0u; r < ROWS && q.y + r < rows; r++) {
    conv_store(c, pixel + r * p.grid_x, vec2<f32>(a[r], b[r]) + vec2<f32>(conv_bias(c)));
  }
}

// Bilinear resampling without aliases: y = the mean of the elements of x around a place, weighted by
// a triangle in each dim that is as wide as two elements of y, and never narrower than two of x.
// One thread per word of y.
// uses: grid upsample_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (planes, x_size)
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // (planes, y_size)
@group(0) @binding(2) var<uniform>             p: Params;

struct Around {
  first: u32,
  end: u32,
  middle: f32,
  narrow: f32, // 1 / half the triangle's width
}
fn around(o: u32, ratio: f32, size: u32) -> Around {
  let reach = max(ratio, 1.0);
  let middle = (f32(o) + 0.5) * ratio;
  let first = u32(max(middle - reach + 0.5, 0.0));
  return Around(first, min(u32(middle + reach + 0.5), size), middle, 1.0 / reach);
}
fn weight(a: Around, i: u32) -> f32 {
  return max(0.0, 1.0 - abs((f32(i) + 0.5 - a.middle) * a.narrow));
}
fn total(a: Around) -> f32 {
  var sum = 0.0;
  for (var i = a.first; i < a.end; i++) {
    sum += weight(a, i);
  }
  return select(sum, 1.0, sum == 0.0);
}

fn value(e: u32) -> f32 {
  let at = place_of(e);
  let h = around(at.row, p.ratio_h, p.x_size.x);
  let w = around(at.col, p.ratio_w, p.x_size.y);
  let all = total(w);
  var sum = 0.0;
  for (var i = h.first; i < h.end; i++) {
    var line = 0.0;
    for (var k = w.first; k < w.end; k++) {
      let from_x = at.first + i * p.x_size.y + k;
      line += elem_get(x[from_x / ELEMS], from_x % ELEMS) * (weight(w, k) / all);
    }
    sum += line * weight(h, i);
  }
  return sum / total(h);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    packed = elem_put(packed, lane, value(min(word * ELEMS + lane, p.n - 1u)));
  }
  y[word] = packed;
}

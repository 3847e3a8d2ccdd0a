// y = the four elements of x around a place, weighted by its distances from them.  One thread per
// word of y.
// uses: grid upsample_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (planes, x_size)
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // (planes, y_size)
@group(0) @binding(2) var<uniform>             p: Params;

// Two neighbours along a dim, and how much of the second.
struct Between {
  low: u32,
  high: u32,
  share: f32,
}
fn between(o: u32, ratio: f32, size: u32) -> Between {
  var at = f32(o) * ratio;
  if (p.align == 0u) {
    at = max(0.0, (f32(o) + 0.5) * ratio - 0.5);
  }
  let low = min(u32(at), size - 1u);
  return Between(low, min(low + 1u, size - 1u), clamp(at - f32(low), 0.0, 1.0));
}

fn element(e: u32) -> f32 { return elem_get(x[e / ELEMS], e % ELEMS); }

fn value(e: u32) -> f32 {
  let at = place_of(e);
  let h = between(at.row, p.ratio_h, p.x_size.x);
  let w = between(at.col, p.ratio_w, p.x_size.y);
  let top = at.first + h.low * p.x_size.y;
  let bottom = at.first + h.high * p.x_size.y;
  let above = element(top + w.low) * (1.0 - w.share) + element(top + w.high) * w.share;
  let below = element(bottom + w.low) * (1.0 - w.share) + element(bottom + w.high) * w.share;
  return above * (1.0 - h.share) + below * h.share;
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

// What q4_glu writes where q4_down reads it: one row as bytes (q4_bytes), half a unit by each
// workgroup. Quad j of unit u is at j · n / 32 + u: x of its four words; their lows, two words a
// quad; what each half is about.
var<workgroup> made: array<f32, 16>;

fn glu_put(m: u32, row: u32, at: u32, factor: f32) {
  for (var lane = 0u; lane < ELEMS; lane++) {
    made[(row + lane) % 16u] = glu_value(at + lane, factor);
  }
}

fn quad(j: u32) -> vec4<f32> {
  return vec4<f32>(made[4u * j], made[4u * j + 1u], made[4u * j + 2u], made[4u * j + 3u]);
}

// After a barrier behind the last glu_put.
fn glu_end(index: u32, local: u32) {
  let mine = local % 2u;
  let eight = eight_of(quad(2u * mine), quad(2u * mine + 1u), 2u);
  let units = p.n / 32u;
  let half = index % 2u;
  let unit = index / 2u;
  if (local >= 2u || unit >= units) {
    return;
  }
  let x_at = 4u * ((2u * half + mine) * units + unit);
  let low_at = 4u * ((4u + half) * units + unit) + 2u * mine;
  let about_at = 4u * ((6u + half) * units + unit) + 2u * mine;
  y[x_at] = eight.x.x;
  y[x_at + 1u] = eight.x.y;
  y[x_at + 2u] = eight.x.z;
  y[x_at + 3u] = eight.x.w;
  y[low_at] = eight.low.x;
  y[low_at + 1u] = eight.low.y;
  y[about_at] = bitcast<u32>(select(eight.about.x, eight.about.z, mine == 1u));
  y[about_at + 1u] = bitcast<u32>(select(eight.about.y, eight.about.w, mine == 1u));
}

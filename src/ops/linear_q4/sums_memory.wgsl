// Sums over the T threads of a set (q4_rows), through workgroup memory: see sums_shuffle.
var<workgroup> parts: array<f32, WG * R>; // (WG, R)
var<workgroup> squared: array<f32, WG>;

// Between what threads put and what they ask for.
fn sums_barrier() { workgroupBarrier(); }
fn sums_put(sums: Sums, local: u32) {
  for (var i = 0u; i < R; i++) {
    parts[local * R + i] = sum_of(sums, i);
  }
}
fn sums_total(i: u32) -> f32 {
  var sum = 0.0;
  for (var k = 0u; k < T; k++) {
    sum += parts[(i / R * T + k) * R + i % R];
  }
  return sum;
}

fn squares_put(value: f32, local: u32) { squared[local] = value; }
fn squares_total(local: u32) -> f32 {
  var sum = 0.0;
  if (local < 16u) {
    for (var i = local; i < WG; i += 16u) {
      sum += squared[i];
    }
  }
  workgroupBarrier();
  if (local < 16u) {
    squared[local] = sum;
  }
  workgroupBarrier();
  sum = 0.0;
  for (var i = 0u; i < 16u; i++) {
    sum += squared[i];
  }
  return sum;
}

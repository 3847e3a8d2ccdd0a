// Sums over the T threads of a set (q4_rows), by shuffles among 32 neighbours and workgroup memory
// between those. Wants subgroups of at least 32.
var<workgroup> parts: array<f32, WG / 32u * R>; // (WG / 32, R)
var<workgroup> squared: array<f32, WG / 32u>;

// Between what threads put and what they ask for.
fn sums_barrier() { workgroupBarrier(); }
fn sums_put(sums: Sums, local: u32) {
  let lane = local % 32u;
  let sum = shuffled(sums, lane);
  if (lane < R) {
    parts[local / 32u * R + row_of(lane)] = sum;
  }
}
// Row i of the workgroup's rows, after a barrier.
fn sums_total(i: u32) -> f32 {
  var sum = 0.0;
  for (var k = 0u; k < T / 32u; k++) {
    sum += parts[(i / R * (T / 32u) + k) * R + i % R];
  }
  return sum;
}

// The sum of a number of each thread, for all of them: squares_put, a barrier, squares_total.
fn squares_put(value: f32, local: u32) {
  let two = value + subgroupShuffleXor(value, 1u);
  let four = two + subgroupShuffleXor(two, 2u);
  let eight = four + subgroupShuffleXor(four, 4u);
  let half = eight + subgroupShuffleXor(eight, 8u);
  let sum = half + subgroupShuffleXor(half, 16u);
  if (local % 32u == 0u) {
    squared[local / 32u] = sum;
  }
}
fn squares_total(local: u32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < WG / 32u; i++) {
    sum += squared[i];
  }
  return sum;
}

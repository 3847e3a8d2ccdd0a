// The sum over 32 neighbours, in each of them.
fn shuffled(sums: Sums, lane: u32) -> f32 {
  let two = sums + subgroupShuffleXor(sums, 1u);
  let four = two + subgroupShuffleXor(two, 2u);
  let eight = four + subgroupShuffleXor(four, 4u);
  let half = eight + subgroupShuffleXor(eight, 8u);
  return half + subgroupShuffleXor(half, 16u);
}
fn row_of(lane: u32) -> u32 { return 0u; }

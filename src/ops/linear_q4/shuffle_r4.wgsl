// The sum over 32 neighbours of row row_of(lane), in each of them: two exchanges leave a lane with
// one of the rows.
fn shuffled(sums: Sums, lane: u32) -> f32 {
  let odd = (lane & 1u) != 0u;
  let pair = select(sums.xy, sums.zw, odd) + subgroupShuffleXor(select(sums.zw, sums.xy, odd), 1u);
  let upper = (lane & 2u) != 0u;
  let one = select(pair.x, pair.y, upper) + subgroupShuffleXor(select(pair.y, pair.x, upper), 2u);
  let two = one + subgroupShuffleXor(one, 4u);
  let four = two + subgroupShuffleXor(two, 8u);
  return four + subgroupShuffleXor(four, 16u);
}
fn row_of(lane: u32) -> u32 { return 2u * (lane & 1u) + ((lane >> 1u) & 1u); }

// The sum over 32 neighbours of row row_of(lane), in each of them: three exchanges leave a lane with
// one of the rows.
fn shuffled(sums: Sums, lane: u32) -> f32 {
  let odd = (lane & 1u) != 0u;
  let four = select(sums.a, sums.b, odd) + subgroupShuffleXor(select(sums.b, sums.a, odd), 1u);
  let upper = (lane & 2u) != 0u;
  let pair = select(four.xy, four.zw, upper) + subgroupShuffleXor(select(four.zw, four.xy, upper), 2u);
  let last = (lane & 4u) != 0u;
  let one = select(pair.x, pair.y, last) + subgroupShuffleXor(select(pair.y, pair.x, last), 4u);
  let two = one + subgroupShuffleXor(one, 8u);
  return two + subgroupShuffleXor(two, 16u);
}
fn row_of(lane: u32) -> u32 { return 4u * (lane & 1u) + (lane & 2u) + ((lane >> 2u) & 1u); }

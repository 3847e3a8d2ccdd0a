// Sums over sets of L neighbouring threads: shuffles inside a subgroup, workgroup memory between
// subgroups. The kernel says const WG (its threads) and const L (a power of two, 4 at least, that
// divides WG). Subgroups of any size from 4 on, made of neighbouring threads.
var<workgroup> lanes: array<f32, WG>; // (subgroups or sets, 4)

// The sum of v over the L threads of a set; valid in its first thread. Uniform control flow only.
// The four sums are transposed on the way: after two exchanges each lane carries one of them.
fn lanes_sum(v: vec4<f32>, local: u32) -> vec4<f32> {
  let ballot = countOneBits(subgroupBallot(true));
  let size = ballot.x + ballot.y + ballot.z + ballot.w;
  let span = min(size, L); // lanes that one shuffle can add up
  let lane = local % size;
  let odd = (local & 1u) != 0u;
  let upper = (local & 2u) != 0u;
  let pair = select(v.xy, v.zw, odd) + subgroupShuffle(select(v.zw, v.xy, odd), lane ^ 1u);
  var sum = select(pair.x, pair.y, upper) + subgroupShuffle(select(pair.y, pair.x, upper), lane ^ 2u);
  for (var far = 4u; far < L; far *= 2u) { // masked rather than left: shuffles want uniform flow
    let other = subgroupShuffle(sum, lane ^ (far & (span - 1u)));
    sum += select(0.0, other, far < span);
  }
  workgroupBarrier(); // the last sum has been read
  if (local % span < 4u) {
    lanes[local / span * 4u + 2u * (local & 1u) + ((local >> 1u) & 1u)] = sum;
  }
  workgroupBarrier();
  var total = vec4<f32>(0.0);
  let start = local / L * (L / span) * 4u;
  for (var i = start; i < start + L / span * 4u; i += 4u) {
    total += vec4<f32>(lanes[i], lanes[i + 1u], lanes[i + 2u], lanes[i + 3u]);
  }
  return total;
}

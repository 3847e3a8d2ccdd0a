// Sums over sets of L neighbouring threads, through workgroup memory. The kernel says
// const WG (its threads) and const L (a power of two that divides WG).
var<workgroup> lanes: array<vec4<f32>, WG>;

// The sum of v over the L threads of a set; valid in its first thread. Uniform control flow only.
fn lanes_sum(v: vec4<f32>, local: u32) -> vec4<f32> {
  workgroupBarrier(); // the last sum has been read
  lanes[local] = v;
  for (var half = L / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local % L < half) {
      lanes[local] += lanes[local + half];
    }
  }
  return lanes[local];
}

// For each block of a row: the weight of what is above the cut, and how many are equal to it.
// One workgroup per block of a row, or of a part of it.
// uses: divide group_tree sample_key sample_weight sample_search sample_params
const WG = 256u;
alias Reduced = u32;
@group(0) @binding(0) var<storage, read>       x: Logits;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let top = top_key(local);
  let s = search(local, top, group.x == 0u && p.block0 == 0u);
  var sum = vec3<u32>();
  let end = min((group.x + 1u) * p.block, p.n);
  for (var e = group.x * p.block + 4u * local; e < end; e += 4u * WG) {
    let four = logits_get(p.first + e);
    for (var k = 0u; k < 4u; k++) {
      let key = key_of(four[k]);
      let upper = key >> p.low;
      if (e + k < end && upper >= s.cut) {
        let w = weight(key, top);
        if (upper == s.cut) {
          sum.z++;
        } else if (w >= p.min_p) {
          sum = vec3<u32>(wide_add(sum.xy, fixed(w)), sum.z);
        }
      }
    }
  }
  let all = scan(sum, local);
  if (local == WG - 1u) {
    let at = SUMS + 4u * (p.block0 + group.x);
    state[at] = all.x;
    state[at + 1u] = all.y;
    state[at + 2u] = all.z;
  }
}

// The best logit of each block as (key, id): the highest, the lowest id among equals.
// One workgroup per block of a row, or of a part of it. Clears the bins that later passes add to.
// uses: group_tree sample_key
const WG = 256u;
alias Reduced = u32;
struct Params {
  first: u32,  // where in x the part lies
  id: u32,     // of its first logit
  n: u32,      // logits in it
  block: u32,  // logits that one workgroup sees, a multiple of 4 WG
  block0: u32, // number of its first block
  clear: u32,  // words of hist
}
@group(0) @binding(0) var<storage, read>       x: Logits;
@group(0) @binding(1) var<storage, read_write> state: array<u32>; // (blocks, 2), and more
@group(0) @binding(2) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  for (var i = group.x * WG + local; i < p.clear; i += groups.x * WG) {
    atomicStore(&hist[i], 0u);
  }
  var key = 0u;
  var at = 0u;
  let end = min((group.x + 1u) * p.block, p.n);
  for (var e = group.x * p.block + 4u * local; e < end; e += 4u * WG) {
    let four = logits_get(p.first + e);
    for (var k = 0u; k < 4u; k++) {
      let other = key_of(four[k]);
      if (other > key && e + k < end) {
        key = other;
        at = e + k;
      }
    }
  }
  let top = group_max(key, local);
  let id = ~group_max(select(0u, ~(p.id + at), key == top), local);
  if (local == 0u) {
    state[2u * (p.block0 + group.x)] = top;
    state[2u * (p.block0 + group.x) + 1u] = id;
  }
}

// One pass of the search for a cut: adds up, by the next 8 bits of their keys, the logits whose
// upper bits are those found so far. One workgroup per block of a row, or of a part of it.
// uses: divide group_tree sample_key sample_weight sample_search sample_params
const WG = 256u;
const WEIGHTS = false; // else counts
const COPIES = 4u;     // of the bins: neighbours often meet in one
alias Reduced = u32;
@group(0) @binding(0) var<storage, read>       x: Logits;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> hist: array<atomic<u32>>; // (passes, 256, 2)
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> bins: array<atomic<u32>, 2048>; // (256, COPIES, 2)

fn add_bin(key: u32, local: u32, value: vec2<u32>) {
  let at = 2u * (((key >> p.shift) & 255u) * COPIES + local % COPIES);
  let high = value.y + u32(atomicAdd(&bins[at], value.x) > ~value.x);
  if (high != 0u) {
    atomicAdd(&bins[at + 1u], high);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  for (var i = local; i < 2048u; i += WG) { // lavapipe does not clear workgroup memory
    atomicStore(&bins[i], 0u);
  }
  let first = group.x == 0u && p.block0 == 0u;
  let top = top_key(local); // has a barrier
  let s = search(local, top, first);
  let end = min((group.x + 1u) * p.block, p.n);
  for (var e = group.x * p.block + 4u * local; e < end; e += 4u * WG) {
    let four = logits_get(p.first + e);
    for (var k = 0u; k < 4u; k++) {
      let key = key_of(four[k]);
      if (e + k < end && ((key >> p.shift) >> 8u) == s.prefix && (key >> p.low) > s.cut) {
        if (WEIGHTS) {
          add_bin(key, local, fixed(weight(key, top)));
        } else {
          add_bin(key, local, vec2<u32>(1u, 0u));
        }
      }
    }
  }
  if (WEIGHTS && first && local == 0u && s.cut != 0u) { // equal logits weigh the same
    let key = key_from(s.cut);
    if (((key >> p.shift) >> 8u) == s.prefix) {
      add_bin(key, local, wide_times(fixed(weight(key, top)), s.ties));
    }
  }
  workgroupBarrier();
  var sum = vec2<u32>();
  for (var copy = 0u; copy < COPIES; copy++) {
    let at = 2u * (local * COPIES + copy);
    sum = wide_add(sum, vec2<u32>(atomicLoad(&bins[at]), atomicLoad(&bins[at + 1u])));
  }
  if (sum.x != 0u || sum.y != 0u) {
    let at = 512u * p.step + 2u * local;
    let high = sum.y + u32(atomicAdd(&hist[at], sum.x) > ~sum.x);
    if (high != 0u) {
      atomicAdd(&hist[at + 1u], high);
    }
  }
}

// The best of all blocks: out[row] = its id, or -1 if it is no number above -inf; ids[0] = that, or 0.
// One workgroup.
// uses: group_tree sample_key
const WG = 256u;
alias Reduced = u32;
struct Params {
  blocks: u32, // at most WG
  row: u32,    // of the token in out
}
@group(0) @binding(0) var<storage, read>       state: array<vec2<u32>>; // (blocks): key, id
@group(0) @binding(1) var<storage, read_write> ids: array<i32>;
@group(0) @binding(2) var<storage, read_write> out: array<i32>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
  var best = vec2<u32>();
  for (var i = local; i < p.blocks; i += WG) {
    let other = state[i];
    if (other.x > best.x || (other.x == best.x && other.y < best.y)) {
      best = other;
    }
  }
  let top = group_max(best.x, local);
  let id = i32(~group_max(select(0u, ~best.y, best.x == top), local));
  if (local == 0u) {
    ids[0] = select(0, id, top > KEY_NOTHING);
    out[p.row] = select(-1, id, top > KEY_NOTHING);
  }
}

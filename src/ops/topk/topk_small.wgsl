// order[line] = the indices of the k best elements, best first.  One thread per element, which counts
// how many of its line are better: for short lines.
// uses: grid topk_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;     // (outer, size, inner)
@group(0) @binding(1) var<storage, read_write> order: array<u32>; // (lines, k)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let e = grid_group(group, groups) * WG + local;
  let line = e / p.size;
  let i = e % p.size;
  if (line >= p.lines) {
    return;
  }
  let mine = key_of(line, i);
  var better = 0u;
  for (var other = 0u; other < p.size; other++) {
    let key = key_of(line, other);
    better += select(0u, 1u, key > mine || (key == mine && other < i));
  }
  if (better < p.k) {
    order[line * p.k + better] = i;
  }
}

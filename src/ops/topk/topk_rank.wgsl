// order[line] = the indices that topk_select found, best first.  One thread per index, which counts
// how many are better.
// uses: grid
override WG: u32 = 64u;
struct Params {
  lines: u32,
  k: u32,
}
@group(0) @binding(0) var<storage, read>       found: array<vec2<u32>>; // (lines, k): key, index
@group(0) @binding(1) var<storage, read_write> order: array<u32>;       // (lines, k)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let e = grid_group(group, groups) * WG + local;
  if (e >= p.lines * p.k) {
    return;
  }
  let first = e / p.k * p.k;
  let mine = found[e];
  var better = 0u;
  for (var start = 0u; start < p.k; start += 4096u) { // some devices stop long loops
    for (var i = start; i < min(p.k, start + 4096u); i++) {
      let other = found[first + i];
      better += select(0u, 1u, other.x > mine.x || (other.x == mine.x && other.y < mine.y));
    }
  }
  order[first + better] = mine.y;
}

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

fn beats(mine: vec2<u32>, i: u32) -> u32 {
  let other = found[i];
  return select(0u, 1u, other.x > mine.x || (other.x == mine.x && other.y < mine.y));
}
fn four_beat(mine: vec2<u32>, i: u32) -> vec4<u32> {
  return vec4<u32>(beats(mine, i), beats(mine, i + 1u), beats(mine, i + 2u), beats(mine, i + 3u));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let e = grid_group(group, groups) * WG + local;
  if (e >= p.lines * p.k) {
    return;
  }
  let first = e / p.k * p.k;
  let mine = found[e];
  var better = vec4<u32>();
  var i = 0u;
  for (; i + 16u <= p.k; i += 16u) { // some devices stop loops after 65,535 turns
    better += four_beat(mine, first + i) + four_beat(mine, first + i + 4u);
    better += four_beat(mine, first + i + 8u) + four_beat(mine, first + i + 12u);
  }
  for (; i < p.k; i++) {
    better.x += beats(mine, first + i);
  }
  let rank = dot(better, vec4<u32>(1u));
  order[first + rank] = mine.y;
}

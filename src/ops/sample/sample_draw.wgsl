// Walks the ids upwards until the weights of those that the cut keeps pass a share of their sum:
// to a block, to a thread's part of it, to the logit. Where the quotient of the best logit is not
// finite, that one is taken. out[row] = the id, or -1 if no logit is a number above -inf; ids[0] = that,
// or 0. One workgroup; of several, one for each part of a row, the part's own one writes.
// uses: divide group_tree sample_key sample_weight sample_search sample_params
const WG = 256u;
alias Reduced = u32;
@group(0) @binding(0) var<storage, read>       x: Logits;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<i32>;
@group(0) @binding(5) var<uniform>             p: Params;

var<workgroup> hit: array<u32, 4>; // who the share falls on, what is left of it, ties before

// Of (weight above the cut, ties) of each thread in order: finds where the weights pass the share
// (of `goal`, or of the whole if that is the first step), and fills `hit`.
fn land(part: vec3<u32>, s: Search, tie: vec2<u32>, goal: vec2<u32>, whole: bool, passed: u32,
        local: u32) {
  let before = passed + scan(part, local).z - part.z;
  let kept = min(part.z, s.ties - min(s.ties, before));
  let mine = wide_add(part.xy, wide_times(tie, kept));
  let sum = scan(vec3<u32>(mine, 0u), local).xy;
  let left = select(goal, wide_part(scan_parts[WG - 1u].xy, p.share).xy, whole);
  let start = wide_sub(sum, mine);
  if (!wide_less(left, start) && wide_less(left, sum)) {
    let rest = wide_sub(left, start);
    hit[0] = local;
    hit[1] = rest.x;
    hit[2] = rest.y;
    hit[3] = before;
  }
  workgroupBarrier();
}

// What one logit adds: its weight, or one tie.
fn part_of(e: u32, s: Search, top: u32) -> vec3<u32> {
  let key = key_of(logits_get(p.first + e).x);
  let w = weight(key, top);
  if ((key >> p.low) == s.cut) {
    return vec3<u32>(0u, 0u, 1u);
  }
  if ((key >> p.low) < s.cut || w < p.min_p) {
    return vec3<u32>();
  }
  return vec3<u32>(fixed(w), 0u);
}

fn put(id: u32, found: bool) {
  ids[0] = select(0, i32(id), found);
  out[p.row] = select(-1, i32(id), found);
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
  let top = top_key(local);
  let s = search(local, top, false);
  var mine = vec3<u32>();
  var best = 0u;
  if (local < p.blocks) {
    let at = SUMS + 4u * local;
    mine = vec3<u32>(state[at], state[at + 1u], state[at + 2u]);
    best = select(0u, ~state[2u * local + 1u], state[2u * local] == top);
  }
  best = ~group_max(best, local);
  if (local < 4u) {
    hit[local] = 0u; // as in pick_bin
  }
  let w = weight(key_from(s.cut), top);
  let tie = select(vec2<u32>(), fixed(w), w >= p.min_p && s.cut != 0u);
  land(mine, s, tie, vec2<u32>(), true, 0u, local);
  let block = hit[0];
  let goal = vec2<u32>(hit[1], hit[2]);
  let passed = hit[3];

  let size = p.block / WG; // of a thread's part
  let inside = block >= p.block0 && (block - p.block0) * p.block < p.n;
  let start = (block - p.block0) * p.block + local * size;
  let end = select(0u, min(start + size, p.n), inside);
  mine = vec3<u32>();
  for (var e = start; e < end; e++) {
    let part = part_of(e, s, top);
    mine = vec3<u32>(wide_add(mine.xy, part.xy), mine.z + part.z);
  }
  land(mine, s, tie, goal, false, passed, local);
  if (top < p.lowest || top > p.highest) {
    if (local == 0u && p.block0 == 0u) {
      put(best, top > KEY_NOTHING);
    }
  } else if (inside && local == hit[0]) {
    var ties = hit[3];
    var sum = vec2<u32>();
    var e = start;
    for (; e < end; e++) {
      let part = part_of(e, s, top);
      sum = wide_add(sum, select(part.xy, tie, part.z != 0u && ties < s.ties));
      ties += part.z;
      if (wide_less(vec2<u32>(hit[1], hit[2]), sum)) {
        break;
      }
    }
    put(p.id + min(e, end - 1u), true);
  }
}

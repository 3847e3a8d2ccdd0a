// The search for the last key that a cut keeps, 8 bits a pass from the highest down: a pass adds
// what it finds to 256 bins, and every workgroup of the next one picks the bin. Top-k counts and
// looks for the k-th; top-p weighs what top-k kept and looks for a share of it.
// The shader says state, hist and the Params p of sample_digit.
const FOLD_NOTHING = 0u; // the first pass
const FOLD_COUNTS = 1u;  // the last pass counted
const FOLD_WEIGHTS = 2u; // the last pass weighed
const FOLD_KEEP = 3u;    // the last pass added to no bins
const SUMS = 512u;       // in state: (256 blocks, 4) behind (256 blocks, 2) bests
const SEARCHES = 1536u;  // in state: (passes, 8)

struct Search {
  prefix: u32,     // bits of the key that are known
  rest: vec2<u32>, // what is looked for among the keys that start so
  cut: u32,        // of the last search that ended: the last key without p.low bits; 0: keeps all
  ties: u32,       // how many of those that have it are kept, the lowest ids
}

// The key whose upper bits these are: what f16 does not have is 0 in the float.
fn key_from(upper: u32) -> u32 {
  let key = upper << p.low;
  return select(key | ((1u << p.low) - 1u), key, key >= 0x80000000u);
}

fn top_key(local: u32) -> u32 {
  var key = 0u;
  if (local < p.blocks) {
    key = state[2u * local];
  }
  return group_max(key, local);
}

// The least n with n · w >= rest.
fn ties_of(rest: vec2<u32>, w: vec2<u32>) -> u32 {
  var n = 0u;
  for (var bit = p.tie_bits; bit > 0u; bit--) {
    let more = n | (1u << (bit - 1u));
    if (wide_less(wide_times(w, more), rest)) {
      n = more;
    }
  }
  return n + 1u;
}

var<workgroup> found: array<u32, 4>; // prefix, rest, ties

fn pick_bin(last: Search, local: u32, top: u32) -> Search {
  var s = last;
  if (local < 4u) {
    found[local] = 0u; // nobody finds anything among weights of zero
  }
  let bin = WG - 1u - local; // the highest first
  let at = 512u * (p.step - 1u) + 2u * bin;
  let mine = vec2<u32>(atomicLoad(&hist[at]), atomicLoad(&hist[at + 1u]));
  let sum = scan(vec3<u32>(mine, 0u), local).xy;
  if (p.starts != 0u) {
    let share = wide_part(scan_parts[WG - 1u].xy, p.top_p);
    let goal = wide_add(share.xy, vec2<u32>(share.z, 0u));
    s.rest = select(vec2<u32>(p.top_k, 0u), goal, p.fold == FOLD_WEIGHTS);
    s.rest.x |= u32(s.rest.x == 0u && s.rest.y == 0u); // the best one stays
  }
  let before = wide_sub(sum, mine);
  if (wide_less(before, s.rest) && !wide_less(sum, s.rest)) {
    let rest = wide_sub(s.rest, before);
    let prefix = (s.prefix << 8u) | bin;
    found[0] = prefix;
    found[1] = rest.x;
    found[2] = rest.y;
    found[3] = rest.x;
    if (p.ends != 0u && p.fold == FOLD_WEIGHTS) {
      found[3] = ties_of(rest, fixed(weight(key_from(prefix), top)));
    }
  }
  workgroupBarrier();
  s.prefix = found[0];
  s.rest = vec2<u32>(found[1], found[2]);
  if (p.ends != 0u) {
    s.cut = s.prefix;
    s.ties = found[3];
    s.prefix = 0u;
  }
  return s;
}

// Where the search stands after the last pass; one workgroup (`first`) keeps it for the next.
fn search(local: u32, top: u32, first: bool) -> Search {
  var s = Search(0u, vec2<u32>(), 0u, 0u);
  if (p.fold != FOLD_NOTHING) {
    let at = SEARCHES + 8u * (p.step - 1u);
    s = Search(state[at], vec2<u32>(state[at + 1u], state[at + 2u]), state[at + 3u], state[at + 4u]);
  }
  if (p.fold == FOLD_COUNTS || p.fold == FOLD_WEIGHTS) {
    s = pick_bin(s, local, top);
  }
  if (first && local == 0u) {
    let at = SEARCHES + 8u * p.step;
    state[at] = s.prefix;
    state[at + 1u] = s.rest.x;
    state[at + 2u] = s.rest.y;
    state[at + 3u] = s.cut;
    state[at + 4u] = s.ties;
  }
  return s;
}

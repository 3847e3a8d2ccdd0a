// found[line][part] = keys and indices of the k best elements of a part of a line, in any order.  One
// workgroup for each: digit by digit it finds the key of the last of them, and among equal keys its
// index, then collects. Where a part has fewer, what is worse than any element stands for the others.
// uses: grid topk_params
const WG = 256u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;           // (outer, size, inner)
@group(0) @binding(1) var<storage, read_write> found: array<vec2<u32>>; // (lines, parts, k): key, index
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> counts: array<atomic<u32>, 256>; // elements by digit
var<workgroup> chosen: vec3<u32>; // the digit, how many are wanted of it, how many there are
var<workgroup> n_found: atomic<u32>;

fn part_end(part: u32) -> u32 { return min(p.size, (part + 1u) * p.each); }

// Counts the digits at `shift` of what has the digits above in common with `last`: of keys, or with
// `ties` of the (inverted) indices of elements whose key is `key`.
fn count_digits(line: u32, part: u32, ties: bool, key: u32, last: u32, shift: u32, local: u32) {
  atomicStore(&counts[local], 0u);
  workgroupBarrier();
  for (var i = part * p.each + local; i < part_end(part); i += WG) {
    let mine = key_of(line, i);
    let digits = select(mine, ~index_of(line, i), ties);
    let above = select(digits >> (shift + 8u) == last >> (shift + 8u), true, shift == 24u);
    if (above && (!ties || mine == key)) {
      atomicAdd(&counts[(digits >> shift) & 255u], 1u);
    }
  }
  workgroupBarrier();
}

// The digit in which the last of `wanted` elements lies, counted from the largest.
fn choose_digit(wanted: u32, local: u32) -> vec3<u32> {
  if (local == 0u) {
    var left = wanted;
    var digit = 255u;
    for (; digit > 0u; digit--) {
      let n = atomicLoad(&counts[digit]);
      if (n >= left) {
        break;
      }
      left -= n;
    }
    chosen = vec3<u32>(digit, left, atomicLoad(&counts[digit]));
  }
  return workgroupUniformLoad(&chosen);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (g >= p.lines * p.parts) {
    return;
  }
  let line = g / p.parts;
  let part = g % p.parts;
  var key = 0u;  // of the last
  var last = 0u; // its index, inverted
  var c = vec3<u32>(0u, p.k, 0u);
  for (var turn = 0u; turn < 4u; turn++) {
    let shift = 24u - turn * 8u;
    count_digits(line, part, false, 0u, key, shift, local);
    c = choose_digit(c.y, local);
    key |= c.x << shift;
  }
  for (var turn = 0u; turn < 4u && c.y < c.z; turn++) { // not all of the equal ones are wanted
    let shift = 24u - turn * 8u;
    count_digits(line, part, true, key, last, shift, local);
    c = choose_digit(c.y, local);
    last |= c.x << shift;
  }
  if (local == 0u) {
    atomicStore(&n_found, 0u);
  }
  workgroupBarrier();
  for (var i = part * p.each + local; i < part_end(part); i += WG) {
    let mine = key_of(line, i);
    let index = index_of(line, i);
    if (mine > key || (mine == key && ~index >= last)) {
      let at = atomicAdd(&n_found, 1u);
      if (at < p.k) {
        found[g * p.k + at] = vec2<u32>(mine, index);
      }
    }
  }
  workgroupBarrier();
  for (var i = atomicLoad(&n_found) + local; i < p.k; i += WG) {
    found[g * p.k + i] = vec2<u32>(0u, 0xffffffffu);
  }
}

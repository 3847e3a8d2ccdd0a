// y[i] = x[0] + … + x[i] along each line.  One workgroup per part of a line, EACH elements a thread at a
// time, on top of what the parts before it have.
// uses: grid cumsum_params
const WG = 64u;
const EACH = 4u;
alias Sum = f32; // of y
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (outer, size, inner)
@group(0) @binding(1) var<storage, read_write> y: array<Sum>; // (outer, size, inner)
@group(0) @binding(2) var<storage, read>       sums_to: array<Sum>; // (lines, parts): through each part
@group(0) @binding(3) var<uniform>             p: Params;

var<workgroup> sums: array<Sum, WG>;

// The sum of what the threads before this one have; afterwards sums has all of it up to each thread.
fn sum_before(mine: Sum, local: u32) -> Sum {
  workgroupBarrier(); // the last sums have been read
  sums[local] = mine;
  var sum = mine;
  for (var off = 1u; off < WG; off *= 2u) {
    workgroupBarrier();
    var before = Sum();
    if (local >= off) {
      before = sums[local - off];
    }
    workgroupBarrier();
    sum += before;
    sums[local] = sum;
  }
  workgroupBarrier();
  if (local == 0u) {
    return Sum();
  }
  return sums[local - 1u]; // not sum - mine, which may be infinite
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
  let part_end = min(p.size, (part + 1u) * p.each);
  var all = Sum(); // of the elements behind us
  if (part > 0u) {
    all = sums_to[g - 1u];
  }
  for (var start = part * p.each; start < part_end; start += WG * EACH) {
    let first = start + local * EACH;
    let end = min(part_end, first + EACH);
    var mine = Sum();
    for (var i = first; i < end; i++) {
      mine += load(element(line, i));
    }
    var sum = all + sum_before(mine, local);
    for (var i = first; i < end; i++) {
      let e = element(line, i);
      sum += load(e);
      y[e] = sum;
    }
    all += sums[WG - 1u];
  }
}

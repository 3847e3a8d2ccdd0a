// totals[line][part] = the sum of the elements of x in a part of a line.  One workgroup for each.
// uses: grid cumsum_params
const WG = 64u;
alias Sum = f32;
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (outer, size, inner)
@group(0) @binding(1) var<storage, read_write> totals: array<Sum>; // (lines, parts)
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> sums: array<Sum, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (g >= p.lines * p.parts) {
    return;
  }
  let first = g % p.parts * p.each;
  let end = min(p.size, first + p.each);
  var sum = Sum();
  for (var i = first + local; i < end; i += WG) {
    sum += load(element(g / p.parts, i));
  }
  sums[local] = sum;
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local < half) {
      sums[local] += sums[local + half];
    }
  }
  if (local == 0u) {
    totals[g] = sums[0];
  }
}

// y = x · Wᵀ + rest for one row of x that comes as bytes: what q4_glu made, by the projection and
// the residual behind it. T threads take 8 rows of the weight, and a unit of all of them at a time,
// so x is in registers: nothing is staged, and no load waits for another. Wants n % 4 == 0.
// uses: grid q4_bytes q4_own q4_four q4_r8 shuffle_r8 sums_shuffle
const WG = 256u;
const T = 256u;
const SETS = WG / T;
struct Params {
  n: u32,
  units: u32,  // of a row
  groups: u32, // scales of a row
  shift: u32,  // unit >> shift is its group
}
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (8, units), by glu_bytes
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, units)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       rest: array<u32>;    // (n)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;       // (n)
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let base = grid_group(group, groups) * SETS * R;
  let at = local * ELEMS;
  let to = (base + at) / ELEMS;
  let before = rest[min(to, (p.n - 1u) / ELEMS)];
  let row = base + local / T * R; // rows past the last are not written
  let half = row + R / 2u;
  let rows = Rows(row * p.units, half * p.units, row * p.groups, half * p.groups, p.units, p.groups, p.shift);
  var sums = Sums();
  for (var u = local % T; u < p.units; u += T) {
    let loaded = load(rows, u);
    own_load(u, p.units);
    sums = multiply(sums, loaded, 0u);
  }
  sums_put(sums, local);
  workgroupBarrier();
  if (at < SETS * R && base + at < p.n) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      word = elem_put(word, lane, sums_total(at + lane) + elem_get(before, lane));
    }
    y[to] = word;
  }
}

// x[i, c] = x[skip + i, c] for i < rows, in place: the rows behind the first `skip` move to the front.
// One thread per unit c of a row. It goes from the first row to the last, so that a row is read
// before it is written where the two ranges overlap.
// uses: grid
override WG: u32 = 64u;
alias T = u32; // rows may make it vec4<u32>
struct Params {
  n: u32, // units of a row
  rows: u32,
  skip: u32, // rows
}
@group(0) @binding(0) var<storage, read_write> x: array<T>;
@group(0) @binding(1) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let c = grid_group(group, groups) * WG + local;
  if (c >= p.n) {
    return;
  }
  for (var i = 0u; i < p.rows; i++) {
    x[i * p.n + c] = x[(p.skip + i) * p.n + c];
  }
}

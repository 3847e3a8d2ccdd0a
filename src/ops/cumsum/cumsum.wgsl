// y[i] = x[0] + … + x[i] along each line.  One thread per line; neighbours read side by side.
// uses: grid cumsum_params
const WG = 64u;
alias Sum = f32; // of y
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (outer, size, inner)
@group(0) @binding(1) var<storage, read_write> y: array<Sum>; // (outer, size, inner)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let line = grid_group(group, groups) * WG + local;
  if (line >= p.lines) {
    return;
  }
  var sum = Sum();
  for (var start = 0u; start < p.size; start += 4096u) { // some devices stop long loops
    for (var i = start; i < min(p.size, start + 4096u); i++) {
      let e = element(line, i);
      sum += load(e);
      y[e] = sum;
    }
  }
}

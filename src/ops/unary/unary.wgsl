// y = f(x), elementwise.  One thread per four elements; `apply` and Result come from a library.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32, // elements
  a: u32, // bits of the operation's numbers, as elements
  b: u32,
  c: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;
@group(0) @binding(1) var<storage, read_write> y: array<Result>;
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u < p.n) {
    y[i] = apply(quad_get(x[i]));
  }
}

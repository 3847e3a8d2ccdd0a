// y = the sum of all losses.  One workgroup.
// uses: group_tree
alias Reduced = f32;
const WG = 256u;
struct Params {
  n: u32,
}
@group(0) @binding(0) var<storage, read>       losses: array<f32>; // (n)
@group(0) @binding(1) var<storage, read_write> y: array<u32>;      // one element
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
  var sum = 0.0;
  for (var i = local; i < p.n; i += WG) {
    sum += losses[i];
  }
  let all = group_add(sum, local);
  if (local == 0u) {
    y[0] = elem_put(0u, 0u, all);
  }
}

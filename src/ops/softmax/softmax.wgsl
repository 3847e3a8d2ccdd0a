// y = e^(x - maximum) / sum, or its logarithm, from each line's maximum and sum.
// One thread per word of y. A line of nothing but -infinity, whose sum is 0, has no softmax.
// uses: grid not_a_number
override WG: u32 = 64u;
const LOG = false;
struct Params {
  n: u32, // elements
  size: u32,
  inner: u32,
  pad: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (outer, size, inner)
@group(0) @binding(1) var<storage, read>       stats: array<vec2<f32>>; // (outer, inner)
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = min(word * ELEMS + lane, p.n - 1u);
    let s = stats[e / p.inner / p.size * p.inner + e % p.inner];
    let above = elem_get(x[e / ELEMS], e % ELEMS) - s.x;
    let of_sum = select(exp(above) / s.y, above - log(s.y), LOG);
    packed = elem_put(packed, lane, select(of_sum, not_a_number().x, s.y == 0.0));
  }
  y[word] = packed;
}

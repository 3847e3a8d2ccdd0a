// y[m, n] = Σ_k x[m, k] · w[n, k] + bias[n], for few rows m.  A workgroup takes one m and WG / L · 4
// rows of w; L threads share four of those rows and read every L-th quad of them.
// Wants k % 4 == 0, a bias for columns only, rows of y that start on words.
// uses: grid either linear_params linear_end activations not_a_number
const WG = 256u;
const L = 64u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;   // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<Quad>;   // (n, k)
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // (cols)
@group(0) @binding(3) var<storage, read>       rest: array<u32>; // as y
@group(0) @binding(4) var<storage, read_write> y: array<u32>;    // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = index % p.m;
  let quads = p.k / 4u;
  let row = (index / p.m * (WG / L) + local / L) * 4u;
  let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.n - 1u)) * quads;
  var a = vec4<f32>(0.0);
  var b = vec4<f32>(0.0);
  var c = vec4<f32>(0.0);
  var d = vec4<f32>(0.0);
  for (var i = local % L; i < quads; i += L) {
    let v = quad_get(x[m * quads + i]);
    a = fma(v, quad_get(w[rows.x + i]), a);
    b = fma(v, quad_get(w[rows.y + i]), b);
    c = fma(v, quad_get(w[rows.z + i]), c);
    d = fma(v, quad_get(w[rows.w + i]), d);
  }
  let one = vec4<f32>(1.0);
  let sum = lanes_sum(vec4<f32>(dot(a, one), dot(b, one), dot(c, one), dot(d, one)), local);
  if (local % L == 0u) {
    linear_put(0u, m, row, sum);
  }
}

// A step of AdamW in place: w = w (1 - lr decay) - lr (m / bias1) / (sqrt(v / bias2) + eps) with
// m = beta1 m + (1 - beta1) g and v = beta2 v + (1 - beta2) g².  One thread per four elements.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32,
  lr: f32,
  keep: f32, // 1 - lr decay
  beta1: f32,
  beta2: f32,
  eps: f32,
  bias1: f32,
  bias2: f32,
  rest1: f32, // 1 - beta1
  rest2: f32, // 1 - beta2
}
@group(0) @binding(0) var<storage, read>       g: array<Quad>;
@group(0) @binding(1) var<storage, read_write> w: array<Quad>;
@group(0) @binding(2) var<storage, read_write> m: array<Quad>;
@group(0) @binding(3) var<storage, read_write> v: array<Quad>;
@group(0) @binding(4) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = grid_group(group, groups) * WG + local;
  if (i * 4u >= p.n) {
    return;
  }
  let grad = quad_get(g[i]);
  let first = quad_get(m[i]) * p.beta1 + grad * p.rest1;
  let second = quad_get(v[i]) * p.beta2 + grad * grad * p.rest2;
  let step = first / p.bias1 / (sqrt(second / p.bias2) + p.eps);
  m[i] = quad_put(first);
  v[i] = quad_put(second);
  w[i] = quad_put(quad_get(w[i]) * p.keep - step * p.lr);
}

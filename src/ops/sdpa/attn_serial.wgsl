// out = softmax(q kᵀ · scale + mask) v by one thread for each row (query, head), without workgroup memory
// and barriers, for software devices. Keys come in turns, with a running maximum and sum.
// uses: grid attn_params
const WG = 8u;     // few: one new token has no more rows than heads
const QUADS = 64u; // of the longest head
const TURN = 8u;   // keys
const LOWEST = -3.4028234e38; // the least finite number
@group(0) @binding(0) var<storage, read>       q: array<Quad>;    // (seq, heads, dim), or (heads, seq, dim)
@group(0) @binding(1) var<storage, read>       k: array<Quad>;    // (keys, kv heads, dim), or heads first
@group(0) @binding(2) var<storage, read>       v: array<Quad>;    // like k
@group(0) @binding(3) var<storage, read>       bias: array<u32>;  // the mask
@group(0) @binding(4) var<storage, read_write> out: array<Quad>;  // like q
@group(0) @binding(5) var<uniform>             p: Params;
var<private> query: array<vec4<f32>, QUADS>;
var<private> acc: array<vec4<f32>, QUADS>;
var<private> weights: array<f32, TURN>; // of a turn; before, the scores

fn score(at: u32, b: u32) -> f32 {
  var sum = vec4<f32>();
  for (var d = 0u; d < p.dim; d++) {
    sum = fma(query[d], quad_get(k[at + d]), sum);
  }
  let s = dot(sum, vec4<f32>(p.scale));
  if (p.masked == 0u) {
    return s;
  }
  return s + elem_get(bias[b / ELEMS], b % ELEMS);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = grid_group(group, groups) * WG + local;
  if (row >= p.seq * p.heads) {
    return;
  }
  let head = row % p.heads; // neighbours are heads of one query: what they read lies side by side
  let token = row / p.heads;
  let q_at = token * p.q_token + head * p.q_head;
  let k_at = head / p.heads_per_kv * p.k_head;
  let b = head / p.mask_heads % p.mask_batches * p.mask.x + head % p.mask_heads * p.mask.y + token * p.mask.z;
  for (var d = 0u; d < p.dim; d++) {
    query[d] = quad_get(q[q_at + d]);
    acc[d] = vec4<f32>();
  }
  let keys = min(p.keys, p.first + token + 1u);
  var most = LOWEST;
  var sum = 0.0;
  for (var start = 0u; start < keys; start += TURN) {
    let count = min(TURN, keys - start);
    let base = k_at + start * p.k_token;
    let before = most;
    for (var i = 0u; i < count; i++) {
      weights[i] = score(base + i * p.k_token, b + (start + i) * p.mask.w);
      most = max(most, weights[i]);
    }
    let keep = exp(before - most);
    sum *= keep;
    for (var i = 0u; i < count; i++) {
      weights[i] = select(exp(weights[i] - most), 0.0, weights[i] < LOWEST);
      sum += weights[i];
    }
    for (var d = 0u; d < p.dim; d++) {
      var total = acc[d] * keep;
      for (var i = 0u; i < count; i++) {
        total = fma(vec4<f32>(weights[i]), quad_get(v[base + i * p.k_token + d]), total);
      }
      acc[d] = total;
    }
  }
  for (var d = 0u; d < p.dim; d++) {
    out[q_at + d] = quad_put(select(acc[d] / sum, vec4<f32>(p.blind), sum == 0.0));
  }
}

// Attention of few queries, second half: joins what attn_split found for the chunks of a row.
// One workgroup per row (query, head); 4 · lanes threads take a chunk's values.
// uses: grid attn_params
const WG = 256u;
const LOWEST = -3.4028234e38;
@group(0) @binding(0) var<storage, read>       parts: array<vec4<f32>>; // (kv heads, rows, chunks, dim + 1): values; maximum and sum
@group(0) @binding(1) var<storage, read_write> out: array<Quad>;        // like q
@group(0) @binding(2) var<uniform>             p: Params;
var<workgroup> sums: array<vec4<f32>, WG>;
var<workgroup> stats: array<vec2<f32>, WG>; // maximum, sum of weights

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  if (index >= p.seq * p.heads) {
    return;
  }
  let wide = 4u * p.lanes;
  let d = local % wide;
  var most = LOWEST;
  var acc = vec4<f32>();
  var sum = 0.0;
  for (var i = local / wide; i < p.chunks; i += WG / wide) { // no load waits for another
    let at = (index * p.chunks + i) * (p.dim + 1u);
    let stat = parts[at + p.dim];
    let part = parts[at + min(d, p.dim - 1u)];
    let top = max(most, stat.x);
    let before = exp(most - top);
    let now = exp(stat.x - top);
    acc = acc * before + part * now;
    sum = sum * before + stat.y * now;
    most = top;
  }
  sums[local] = acc;
  stats[local] = vec2<f32>(most, sum);
  workgroupBarrier();
  if (local < p.dim) {
    for (var i = local + wide; i < WG; i += wide) {
      most = max(most, stats[i].x);
    }
    acc = vec4<f32>();
    sum = 0.0;
    for (var i = local; i < WG; i += wide) {
      let weight = exp(stats[i].x - most);
      acc += sums[i] * weight;
      sum += stats[i].y * weight;
    }
    let rows = p.seq * p.heads_per_kv;
    let r = index % rows;
    let at = r / p.heads_per_kv * p.q_token + (index / rows * p.heads_per_kv + r % p.heads_per_kv) * p.q_head;
    out[at + local] = quad_put(select(acc / sum, vec4<f32>(p.blind), sum == 0.0));
  }
}

// Attention of four rows over a chunk of keys: its maximum, sum of weights and weighted values.
// A key is read by p.lanes threads, four quads each; then a value row by 4 · p.lanes threads.
// The kernel says const WG and const MOST (keys of a chunk), fills `query`, and gives
//   fn key_cached(i: u32, d: u32) -> vec4<f32>, fn value_cached(…)  quad d of key i of the chunk, from memory
//   fn key_now(cached: vec4<f32>, i: u32, d: u32) -> vec4<f32>, fn value_now(…)  …or what comes in its place
//   fn masked(s: f32, r: u32, i: u32) -> f32     its score for row r; p.never: none
//   fn put_part(r: u32, d: u32, total: vec4<f32>, most: f32, sum: f32)
// and p.dim (quads), p.lanes, p.scale, p.never.
const HEADS = 4u;
const QUERY = 256u; // quads of four rows: heads of up to QUERY elements
const LOWEST = -3.4028234e38;
fn dim() -> u32 { return p.dim; }

fn key_quad(i: u32, d: u32) -> vec4<f32> { return key_now(key_cached(i, d), i, d); }
fn value_quad(i: u32, d: u32) -> vec4<f32> { return value_now(value_cached(i, d), i, d); }
var<workgroup> query: array<vec4<f32>, QUERY>;  // (4 rows, dim)
var<workgroup> weights: array<vec4<f32>, MOST>; // (keys): four rows
var<workgroup> sums: array<vec4<f32>, WG>;

// Loads that need not wait for `query`: none here.
struct Early { none: u32 }
fn attend_early(turn: u32, count: u32, local: u32) -> Early { return Early(0u); }

// Behind what fills `query`; `count` keys. Uniform control flow only.
fn attend(count: u32, local: u32, early: Early) {
  workgroupBarrier();
  let lane = local % p.lanes;
  for (var turn = 0u; turn < count; turn += WG / p.lanes) {
    let mine = turn + local / p.lanes;
    var s = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
      let d = lane + i * p.lanes;
      if (d < p.dim) {
        let key = key_quad(min(mine, count - 1u), d);
        s += vec4<f32>(dot(key, query[d]), dot(key, query[p.dim + d]), dot(key, query[2u * p.dim + d]),
                       dot(key, query[3u * p.dim + d]));
      }
    }
    s = lanes_add(s, local, p.lanes) * p.scale;
    if (lane == 0u && mine < count) {
      for (var r = 0u; r < 4u; r++) {
        s[r] = masked(s[r], r, mine);
      }
      weights[mine] = s;
    }
  }
  workgroupBarrier();

  var s = vec4<f32>(p.never);
  if (local < count) {
    s = weights[local];
  }
  let most = max(vec4<f32>(LOWEST), group_max(s, local));
  let weight = select(exp(s - most), vec4<f32>(), s < vec4<f32>(LOWEST));
  let sum = group_add(weight, local);
  if (local < count) {
    weights[local] = weight;
  }
  workgroupBarrier();

  let wide = 4u * p.lanes; // threads of a value row
  let d = local % wide;
  var acc: array<vec4<f32>, 4>;
  if (d < p.dim) {
    for (var i = local / wide; i < count; i += WG / wide) {
      let value = value_quad(i, d);
      let w = weights[i];
      acc[0] += w.x * value;
      acc[1] += w.y * value;
      acc[2] += w.z * value;
      acc[3] += w.w * value;
    }
  }
  for (var r = 0u; r < 4u; r++) {
    sums[local] = acc[r];
    workgroupBarrier();
    if (local < p.dim) {
      var total = sums[local];
      for (var i = 1u; i < WG / wide; i++) {
        total += sums[local + i * wide];
      }
      put_part(r, local, total, most[r], sum[r]);
    }
    workgroupBarrier();
  }
}

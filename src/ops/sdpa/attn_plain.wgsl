// out = softmax(q kᵀ · scale + mask) v for every head size, dtype and mask.
// A workgroup does as many neighbouring rows of out as a word has elements, so that no word belongs
// to two, and up to 256 of their words; keys come in tiles of WG, with a running maximum and sum.
// uses: grid attn_params
alias Reduced = vec2<f32>; // by row of the workgroup
const WG = 64u;
const WORDS = 4u;                // of out, a thread
const LOWEST = -3.4028234e38; // the least finite number
@group(0) @binding(0) var<storage, read>       q: array<u32>;    // (seq, heads, dim), or (heads, seq, dim)
@group(0) @binding(1) var<storage, read>       k: array<u32>;    // (keys, heads / group, dim), or heads first
@group(0) @binding(2) var<storage, read>       v: array<u32>;    // like k, with `wide` elements a head
@group(0) @binding(3) var<storage, read>       bias: array<u32>; // the mask
@group(0) @binding(4) var<storage, read_write> out: array<u32>;  // like q, with `wide` elements a head
@group(0) @binding(5) var<uniform>             p: Params;
var<workgroup> weights: array<vec2<f32>, WG>; // by key of the tile

// Head and query of a row of out.
fn place(row: u32) -> vec2<u32> {
  if (p.head_major != 0u) {
    return vec2<u32>(row / p.seq, row % p.seq);
  }
  return vec2<u32>(row % p.heads, row / p.heads);
}

fn score(at: vec2<u32>, key: u32) -> f32 {
  let qa = at.x * p.q_head + at.y * p.q_token;
  let ka = at.x / p.heads_per_kv * p.k_head + key * p.k_token;
  var sum = 0.0;
  for (var d = 0u; d < p.dim; d++) {
    sum += elem_get(q[(qa + d) / ELEMS], (qa + d) % ELEMS) * elem_get(k[(ka + d) / ELEMS], (ka + d) % ELEMS);
  }
  sum *= p.scale;
  if (p.masked != 0u) {
    let b = at.x / p.mask_heads % p.mask_batches * p.mask.x + at.x % p.mask_heads * p.mask.y + at.y * p.mask.z + key * p.mask.w;
    sum += elem_get(bias[b / ELEMS], b % ELEMS);
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let parts = (p.wide + WG * WORDS - 1u) / (WG * WORDS);
  let index = grid_group(group, groups);
  let row = index / parts * ELEMS;
  if (row >= p.seq * p.heads) {
    return;
  }
  let rows = min(ELEMS, p.seq * p.heads - row);
  let a = place(row);
  let b = place(row + rows - 1u);
  var limits = min(vec2<u32>(p.keys), vec2<u32>(p.first + a.y + 1u, p.first + b.y + 1u));
  let tiles = (max(limits.x, limits.y) + WG - 1u) / WG;
  var most = vec2<f32>(LOWEST);
  var sum = vec2<f32>();
  var acc: array<vec2<f32>, WORDS>;
  for (var tile = 0u; tile < tiles; tile++) {
    let key = tile * WG + local;
    var s = vec2<f32>(p.never);
    if (key < limits.x) {
      s.x = score(a, key);
    }
    if (rows > 1u && key < limits.y) {
      s.y = score(b, key);
    }
    let now = max(most, group_max(s, local));
    let keep = exp(most - now);
    let weight = select(exp(s - now), vec2<f32>(), s < vec2<f32>(LOWEST));
    most = now;
    sum = sum * keep + weight;
    weights[local] = weight;
    workgroupBarrier();
    for (var i = 0u; i < WORDS; i++) {
      for (var lane = 0u; lane < ELEMS; lane++) {
        let e = ((index % parts * WORDS + i) * WG + local) * ELEMS + lane;
        let r = e / p.wide;
        if (r >= rows) {
          continue;
        }
        let head = select(a.x, b.x, r == 1u);
        let va = head / p.heads_per_kv * p.v_head + tile * WG * p.v_token + e % p.wide;
        let count = min(WG, max(limits[r], tile * WG) - tile * WG);
        var total = acc[i][lane] * keep[r];
        for (var j = 0u; j < count; j++) {
          let at = va + j * p.v_token;
          total += weights[j][r] * elem_get(v[at / ELEMS], at % ELEMS);
        }
        acc[i][lane] = total;
      }
    }
    workgroupBarrier();
  }
  sum = group_add(sum, local);
  let factor = select(1.0 / sum, vec2<f32>(p.blind), sum == vec2<f32>());
  for (var i = 0u; i < WORDS; i++) {
    let word = (index % parts * WORDS + i) * WG + local;
    var packed = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let r = (word * ELEMS + lane) / p.wide;
      packed = elem_put(packed, lane, acc[i][lane] * factor[min(r, 1u)]);
    }
    if (word * ELEMS < rows * p.wide) {
      out[row / ELEMS * p.wide + word] = packed;
    }
  }
}

// y[m, n] = Σ_k x[m, k] · w[n, k] · scale[n, k / group] + bias[n], for few rows m. A workgroup takes one m and
// WG / L · 4 rows of w; L threads share four of those rows and read every L-th piece of them.
// Wants rows of x, w and groups in whole pieces, rows of y that start on words.
// uses: grid either q8w_bias q8w_quad q8w_params
const WG = 256u;
const L = 64u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;     // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<Piece>;    // (n, k) bytes
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (cols, groups)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

fn scale_at(at: u32) -> f32 { return either_get(scales[either_word(at, p.half)], at, p.half); }
fn scales_of(rows: vec4<u32>, group: u32) -> vec4<f32> {
  let at = (p.first + rows) * p.groups + group;
  return vec4<f32>(scale_at(at.x), scale_at(at.y), scale_at(at.z), scale_at(at.w));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = index % p.m;
  let row = (index / p.m * (WG / L) + local / L) * 4u;
  let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.n - 1u));
  let pieces = p.k / (4u * PIECE);
  let in_group = p.group / (4u * PIECE);
  var scale = scales_of(rows, 0u);
  var sum = vec4<f32>(0.0);
  for (var i = local % L; i < pieces; i += L) {
    let at = (m * pieces + i) * PIECE;
    let part = vec4<f32>(piece_dot(at, w[rows.x * pieces + i]), piece_dot(at, w[rows.y * pieces + i]),
                         piece_dot(at, w[rows.z * pieces + i]), piece_dot(at, w[rows.w * pieces + i]));
    if (p.groups > 1u) {
      scale = scales_of(rows, i / in_group);
    }
    sum = fma(part, scale, sum);
  }
  sum = lanes_sum(sum, local);
  if (local % L > 0u) {
    return;
  }
  for (var i = 0u; i < 4u && row + i < p.n; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      word = elem_put(word, lane, sum[i + lane] + bias_at(row + i + lane));
    }
    y[(m * p.cols + p.first + row + i) / ELEMS] = word;
  }
}

// y as in q8ta_tile, for few rows m. A workgroup takes one m and 16 rows of w; 16 threads share four of
// those rows and read every 16th piece of them. Rows of x and w are whole pieces.
// uses: grid either apart group_tree q8_real q8_requant q8_linear_params
alias Reduced = vec4<i32>;
const WG = 64u;
const L = 16u;
@group(0) @binding(0) var<storage, read>       x: array<Piece>;    // (m, k) bytes
@group(0) @binding(1) var<storage, read>       w: array<Piece>;    // (n, words)
@group(0) @binding(2) var<storage, read>       sums: array<i32>;   // (n), of rows of w
@group(0) @binding(3) var<storage, read>       scales: array<u32>; // (n)
@group(0) @binding(4) var<storage, read>       bias: array<u32>;   // (n)
@group(0) @binding(5) var<storage, read_write> y: array<Out>;      // (m, n)
@group(0) @binding(6) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = index % p.m;
  let n = (index / p.m * (WG / L) + local / L) * 4u;
  let channel = min(vec4<u32>(n) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.n - 1u));
  let pieces = p.words / PIECE;
  let rows = channel * pieces;
  var sum = vec4<i32>();
  for (var i = local % L; i < pieces; i += L) {
    let v = x[m * pieces + i];
    sum += vec4<i32>(piece_dot(v, w[rows.x + i]), piece_dot(v, w[rows.y + i]),
                     piece_dot(v, w[rows.z + i]), piece_dot(v, w[rows.w + i]));
  }
  sum = lanes_add(sum, local, L);
  if (local % L == 0u && n < p.n) {
    let offset = p.x_zero * vec4<i32>(sums[channel.x], sums[channel.y], sums[channel.z],
                                      sums[channel.w]);
    q8_put(m * p.n + n, min(4u, p.n - n), q8_real(sum - offset, channel));
  }
}

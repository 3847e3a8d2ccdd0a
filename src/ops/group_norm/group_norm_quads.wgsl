// group_norm.wgsl where channels are whole quads: reads and writes of 16 bytes (8 for halves).
// A workgroup does ELEMS rows one after the other, so that it owns a word of mean and of rstd.
// uses: grid group_tree group_norm_params group_norm_affine elem_pair
alias Reduced = f32;
const WG = 64u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;   // (rows, cols)
@group(0) @binding(1) var<storage, read>       w: array<u32>;    // (groups * depth)
@group(0) @binding(2) var<storage, read>       b: array<u32>;    // (groups * depth)
@group(0) @binding(3) var<storage, read_write> y: array<Quad>;   // (rows, cols)
@group(0) @binding(4) var<storage, read_write> mean: array<u32>; // (rows)
@group(0) @binding(5) var<storage, read_write> rstd: array<u32>; // (rows)
@group(0) @binding(6) var<uniform>             p: Params;

// Normalises a row; returns its mean and its factor.
fn norm_row(row: u32, local: u32) -> vec2<f32> {
  let quads = p.cols / 4u;
  let at = row * quads;
  var sum = vec4<f32>();
  for (var i = local; i < quads; i += WG) {
    sum += quad_get(x[at + i]);
  }
  let middle = group_add(dot(sum, vec4<f32>(1.0)), local) / f32(p.cols);
  sum = vec4<f32>();
  for (var i = local; i < quads; i += WG) {
    let off = quad_get(x[at + i]) - middle;
    sum += off * off;
  }
  let factor = inverseSqrt(group_add(dot(sum, vec4<f32>(1.0)), local) / f32(p.cols) + p.eps);
  for (var i = local; i < quads; i += WG) {
    let v = (quad_get(x[at + i]) - middle) * factor;
    y[at + i] = quad_put(scaled4(v, channel_of(row, i * 4u)));
  }
  return vec2<f32>(middle, factor);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = grid_group(group, groups) * ELEMS;
  if (first >= p.rows) {
    return;
  }
  var means = vec2<f32>();
  var factors = vec2<f32>();
  for (var lane = 0u; lane < min(ELEMS, p.rows - first); lane++) {
    let both = norm_row(first + lane, local);
    means[lane] = both.x;
    factors[lane] = both.y;
  }
  if (local == 0u) {
    mean[(p.first + first) / ELEMS] = pair(means);
    rstd[(p.first + first) / ELEMS] = pair(factors);
  }
}

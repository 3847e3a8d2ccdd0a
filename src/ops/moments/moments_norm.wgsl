// y = (x - mean) / sqrt(variance + eps) w + b over rows of x, from what moments.wgsl found for each.
// The rows are groups of channels, of which each has its own w and b.  One thread per word of y.
// uses: grid
override WG: u32 = 64u;
struct Params {
  n: u32,      // elements
  cols: u32,   // of a row
  groups: u32, // rows after which channels begin again,
  depth: u32,  // so many channels in each,
  inner: u32,  // so many elements in a channel
  affine: u32, // bit 0: w is there, bit 1: b
  eps: f32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;           // (rows, cols)
@group(0) @binding(1) var<storage, read>       w: array<u32>;           // (groups * depth)
@group(0) @binding(2) var<storage, read>       b: array<u32>;           // (groups * depth)
@group(0) @binding(3) var<storage, read>       stats: array<vec2<f32>>; // (rows)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;           // (rows, cols)
@group(0) @binding(5) var<uniform>             p: Params;

fn value(e: u32) -> f32 {
  let row = e / p.cols;
  let c = row % p.groups * p.depth + e % p.cols / p.inner;
  var v = elem_get(x[e / ELEMS], e % ELEMS) - stats[row].x;
  v *= inverseSqrt(stats[row].y / f32(p.cols) + p.eps);
  if ((p.affine & 1u) != 0u) {
    v *= elem_get(w[c / ELEMS], c % ELEMS);
  }
  if ((p.affine & 2u) != 0u) {
    v += elem_get(b[c / ELEMS], c % ELEMS);
  }
  return v;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    packed = elem_put(packed, lane, value(min(word * ELEMS + lane, p.n - 1u)));
  }
  y[word] = packed;
}

// group_norm.wgsl from the parts that group_norm_part found.  One workgroup per part of a row; each
// puts the row's parts together again, which are few.
// uses: grid group_norm_params group_norm_affine elem_pair
const WG = 256u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;          // (rows, cols)
@group(0) @binding(1) var<storage, read>       w: array<u32>;           // (groups * depth)
@group(0) @binding(2) var<storage, read>       b: array<u32>;           // (groups * depth)
@group(0) @binding(3) var<storage, read>       stats: array<vec2<f32>>; // (rows, parts)
@group(0) @binding(4) var<storage, read_write> y: array<Quad>;          // (rows, cols)
@group(0) @binding(5) var<storage, read_write> mean: array<u32>;        // (rows)
@group(0) @binding(6) var<storage, read_write> rstd: array<u32>;        // (rows)
@group(0) @binding(7) var<uniform>             p: Params;

fn part_size(part: u32) -> u32 { // quads
  let quads = p.cols / 4u;
  let each = (quads + p.parts - 1u) / p.parts;
  return min(quads, (part + 1u) * each) - min(quads, part * each);
}

// The mean of a row and its factor.
fn joined(row: u32) -> vec2<f32> {
  var sum = 0.0;
  for (var i = 0u; i < p.parts; i++) {
    sum += stats[(p.first + row) * p.parts + i].x * f32(part_size(i) * 4u);
  }
  let middle = sum / f32(p.cols);
  var squares = 0.0;
  for (var i = 0u; i < p.parts; i++) {
    let part = stats[(p.first + row) * p.parts + i];
    let off = part.x - middle;
    squares += part.y + off * off * f32(part_size(i) * 4u);
  }
  return vec2<f32>(middle, inverseSqrt(squares / f32(p.cols) + p.eps));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (g >= p.rows * p.parts) {
    return;
  }
  let row = g / p.parts;
  let part = g % p.parts;
  let quads = p.cols / 4u;
  let first = min(quads, part * ((quads + p.parts - 1u) / p.parts));
  let both = joined(row);
  for (var i = first + local; i < first + part_size(part); i += WG) {
    let v = (quad_get(x[row * quads + i]) - both.x) * both.y;
    y[row * quads + i] = quad_put(scaled4(v, channel_of(row, i * 4u)));
  }
  if (local == 0u && part == 0u && row % ELEMS == 0u) {
    let next = joined(min(row + 1u, p.rows - 1u));
    mean[(p.first + row) / ELEMS] = pair(vec2<f32>(both.x, next.x));
    rstd[(p.first + row) / ELEMS] = pair(vec2<f32>(both.y, next.y));
  }
}

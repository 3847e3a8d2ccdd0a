// A tile of x · Wᵀ (q4_tensor) over one of p.slices of k, as sums in f32. What remains to be done to
// them (factors, bias) does q4_scaled.
// uses: grid q4_params q4_tensor
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (m, k padded to 64) halves of q4_half
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       norms: array<f32>;   // (cols) powers of two that scales are multiplied by
@group(0) @binding(4) var<storage, read_write> y: array<f32>;       // (slices, m, n), both padded to tiles
@group(0) @binding(5) var<uniform>             p: Params;

struct Out { at: u32, width: u32 }

fn weight_row(n0: u32, col: u32) -> Row {
  let n = min(n0 + col, p.n - 1u);
  return Row(n * (p.k / 32u), n * p.groups, p.first + n);
}

fn pair_out(o: Out, i: u32, a: Result, b: Result) {
  let at = o.at + i * MM * o.width;
  subgroupMatrixStore<row_major>(&y, at, a, o.width);
  subgroupMatrixStore<row_major>(&y, at + MN, b, o.width);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let down = (p.m + ROWS - 1u) / ROWS; // tiles of rows: neighbours share weights
  let across = (p.n + COLS - 1u) / COLS;
  let index = grid_group(group, groups);
  let slice = index / (down * across);
  if (slice >= p.slices) { // a folded grid has more workgroups
    return;
  }
  let n0 = index / down % across * COLS;
  let m0 = index % down * ROWS;
  let seat = seat_of(local);
  let width = across * COLS;
  let at = (slice * down * ROWS + m0 + seat.gm * SUB_ROWS) * width + n0 + seat.gn * SUB_COLS;
  let from_k = slice * p.span;
  tile_products(places(m0, n0, local), from_k, min(from_k + p.span, units() * 8u), seat, Out(at, width));
}

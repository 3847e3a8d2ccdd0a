// A tile of y = silu(x · Gᵀ) · (x · Uᵀ) (q4_tensor); G and U lie in one buffer. Of two neighbouring
// matrices of results the first is the gate's, the other has up's for the same rows and columns.
// uses: grid q4_params q4_tensor
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (m, k padded to 64) halves of q4_half
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // two of (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // two of (n, groups)
@group(0) @binding(3) var<storage, read>       norms: array<f32>;   // two of (n) powers of two that scales are multiplied by
@group(0) @binding(4) var<storage, read>       factors: array<f32>; // (m)
@group(0) @binding(5) var<storage, read_write> y: array<Quad>;      // (m, n)
@group(0) @binding(6) var<uniform>             p: Params;
// Results of a subgroup's matrix on their way: its elements cannot be reached in another way.
const LINE = MN / 4u + 1u;
const TURNS = MM * MN / 4u / LANES; // quads of a matrix for each thread
var<workgroup> staged: array<array<vec4<f32>, MM * LINE>, GM * GN>;

struct Out { m: u32, n: u32, seat: Seat }

fn weight_row(n0: u32, col: u32) -> Row {
  let n = min(n0 + col / (2u * MN) * MN + col % MN, p.n - 1u);
  let up = col / MN % 2u;
  return Row(n * (p.k / 32u) + up * p.w_at, n * p.groups + up * p.s_at, n + up * p.n_at);
}

fn inverse(power_of_two: f32) -> f32 { return bitcast<f32>(0x7f000000u - bitcast<u32>(power_of_two)); }
fn inverse_norms(n: u32) -> vec4<f32> {
  return vec4<f32>(inverse(norms[n]), inverse(norms[n + 1u]), inverse(norms[n + 2u]), inverse(norms[n + 3u]));
}

fn pair_out(o: Out, i: u32, a: Result, b: Result) {
  let quad = o.seat.local % (MN / 4u);
  let col = o.n + 4u * quad;
  let n = min(col, p.n - 4u);
  let norm_g = inverse_norms(n);
  let norm_u = inverse_norms(n + p.n_at);
  subgroupMatrixStore<row_major>(&staged[o.seat.sg], 0u, a, LINE);
  workgroupBarrier();
  let gate0 = staged[o.seat.sg][o.seat.local % LANES / (MN / 4u) * LINE + quad];
  let gate1 = staged[o.seat.sg][(o.seat.local % LANES + LANES) / (MN / 4u) % MM * LINE + quad];
  workgroupBarrier();
  subgroupMatrixStore<row_major>(&staged[o.seat.sg], 0u, b, LINE);
  workgroupBarrier();
  for (var turn = 0u; turn < TURNS; turn++) {
    let row = (o.seat.local % LANES + turn * LANES) / (MN / 4u);
    let m = o.m + i * MM + row;
    let factor = factors[min(m, p.m - 1u)];
    let g = select(gate1, gate0, turn == 0u) * factor * norm_g;
    let u = staged[o.seat.sg][row * LINE + quad] * factor * norm_u;
    if (m < p.m && col < p.n) {
      y[(m * p.n + n) / 4u] = quad_put(g / (1.0 + exp(-g)) * u);
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let down = (p.m + ROWS - 1u) / ROWS; // tiles of rows: neighbours share weights
  let index = grid_group(group, groups);
  let n0 = index / down * (COLS / 2u);
  let m0 = index % down * ROWS;
  let seat = seat_of(local);
  let o = Out(m0 + seat.gm * SUB_ROWS, n0 + seat.gn * (SUB_COLS / 2u), seat);
  tile_products(places(m0, n0, local), 0u, p.span, seat, o);
}

// Results of q4_tensor over all of k, four columns at a time: the kernel has `fn put4(m, n, sum)`, which
// looks itself whether row and columns are there, and binds what q4_tensor wants.
// Results of a subgroup's matrix on their way: its elements cannot be reached in another way.
const LINE = MN / 4u + 1u;
const TURNS = MM * MN / 4u / LANES; // quads of a matrix for each thread
var<workgroup> staged: array<array<vec4<f32>, MM * LINE>, GM * GN>;

struct Out { m: u32, n: u32, seat: Seat }

fn weight_row(n0: u32, col: u32) -> Row {
  let n = min(n0 + col, p.n - 1u);
  return Row(n * (p.k / 32u), n * p.groups, p.first + n);
}

fn matrix_out(o: Out, m0: u32, n0: u32, sums: Result) {
  let quad = o.seat.local % (MN / 4u);
  subgroupMatrixStore<row_major>(&staged[o.seat.sg], 0u, sums, LINE);
  workgroupBarrier();
  for (var turn = 0u; turn < TURNS; turn++) {
    let row = (o.seat.local % LANES + turn * LANES) / (MN / 4u);
    put4(m0 + row, n0 + 4u * quad, staged[o.seat.sg][row * LINE + quad]);
  }
  workgroupBarrier();
}

fn pair_out(o: Out, i: u32, a: Result, b: Result) {
  matrix_out(o, o.m + i * MM, o.n, a);
  matrix_out(o, o.m + i * MM, o.n + MN, b);
}

fn whole_tile(index: u32, local: u32) {
  let down = (p.m + ROWS - 1u) / ROWS; // tiles of rows: neighbours share weights
  let n0 = index / down * COLS;
  let m0 = index % down * ROWS;
  let seat = seat_of(local);
  let o = Out(m0 + seat.gm * SUB_ROWS, n0 + seat.gn * SUB_COLS, seat);
  tile_products(places(m0, n0, local), 0u, p.span, seat, o);
}

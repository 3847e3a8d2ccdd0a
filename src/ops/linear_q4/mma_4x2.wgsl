// q4_tensor's products: a subgroup has 4 by 2 matrices. Each sum is a variable of its own, and the
// offsets of all matrices are constants.
const SA = 4u;
const SB = 2u;
fn tile_products(at: Places, from_k: u32, to_k: u32, seat: Seat, o: Out) {
  var c00 = Result();
  var c01 = Result();
  var c10 = Result();
  var c11 = Result();
  var c20 = Result();
  var c21 = Result();
  var c30 = Result();
  var c31 = Result();
  var next = load(at, from_k, seat.local);
  for (var k = from_k; k < to_k; k += DEEP) {
    workgroupBarrier();
    store(next, seat.local);
    workgroupBarrier();
    next = load(at, min(k + DEEP, to_k - DEEP), seat.local); // a branch here costs 6 % on an H200
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 0u * MN * STRIDE + 0u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 1u * MN * STRIDE + 0u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 0u * MM * STRIDE + 0u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 1u * MM * STRIDE + 0u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
      let a2 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 2u * MM * STRIDE + 0u * MK / 4u, STRIDE);
      c20 = subgroupMatrixMultiplyAccumulate(a2, b0, c20);
      c21 = subgroupMatrixMultiplyAccumulate(a2, b1, c21);
      let a3 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 3u * MM * STRIDE + 0u * MK / 4u, STRIDE);
      c30 = subgroupMatrixMultiplyAccumulate(a3, b0, c30);
      c31 = subgroupMatrixMultiplyAccumulate(a3, b1, c31);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 0u * MN * STRIDE + 1u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 1u * MN * STRIDE + 1u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 0u * MM * STRIDE + 1u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 1u * MM * STRIDE + 1u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
      let a2 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 2u * MM * STRIDE + 1u * MK / 4u, STRIDE);
      c20 = subgroupMatrixMultiplyAccumulate(a2, b0, c20);
      c21 = subgroupMatrixMultiplyAccumulate(a2, b1, c21);
      let a3 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 3u * MM * STRIDE + 1u * MK / 4u, STRIDE);
      c30 = subgroupMatrixMultiplyAccumulate(a3, b0, c30);
      c31 = subgroupMatrixMultiplyAccumulate(a3, b1, c31);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 0u * MN * STRIDE + 2u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 1u * MN * STRIDE + 2u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 0u * MM * STRIDE + 2u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 1u * MM * STRIDE + 2u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
      let a2 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 2u * MM * STRIDE + 2u * MK / 4u, STRIDE);
      c20 = subgroupMatrixMultiplyAccumulate(a2, b0, c20);
      c21 = subgroupMatrixMultiplyAccumulate(a2, b1, c21);
      let a3 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 3u * MM * STRIDE + 2u * MK / 4u, STRIDE);
      c30 = subgroupMatrixMultiplyAccumulate(a3, b0, c30);
      c31 = subgroupMatrixMultiplyAccumulate(a3, b1, c31);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 0u * MN * STRIDE + 3u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[seat.gn], 1u * MN * STRIDE + 3u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 0u * MM * STRIDE + 3u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 1u * MM * STRIDE + 3u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
      let a2 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 2u * MM * STRIDE + 3u * MK / 4u, STRIDE);
      c20 = subgroupMatrixMultiplyAccumulate(a2, b0, c20);
      c21 = subgroupMatrixMultiplyAccumulate(a2, b1, c21);
      let a3 = subgroupMatrixLoad<Left, row_major>(&sx[seat.gm], 3u * MM * STRIDE + 3u * MK / 4u, STRIDE);
      c30 = subgroupMatrixMultiplyAccumulate(a3, b0, c30);
      c31 = subgroupMatrixMultiplyAccumulate(a3, b1, c31);
    }
  }
  pair_out(o, 0u, c00, c01);
  pair_out(o, 1u, c10, c11);
  pair_out(o, 2u, c20, c21);
  pair_out(o, 3u, c30, c31);
}

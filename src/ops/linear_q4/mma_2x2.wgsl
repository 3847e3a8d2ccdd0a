// q4_matrix's products: a subgroup has 2 by 2 matrices. Each sum is a variable of its own, and the
// offsets of all matrices are constants.
const SA = 2u;
const SB = 2u;
fn tile_products(at: Places, from_k: u32, to_k: u32, local: u32, gm: u32, gn: u32, to: u32, width: u32) {
  var c00 = Result();
  var c01 = Result();
  var c10 = Result();
  var c11 = Result();
  var next = load(at, from_k, local);
  for (var k = from_k; k < to_k; k += DEEP) {
    workgroupBarrier();
    store(next, local);
    workgroupBarrier();
    if (k + DEEP < to_k) {
      next = load(at, k + DEEP, local);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 0u * MN * STRIDE + 0u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 1u * MN * STRIDE + 0u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 0u * MM * STRIDE + 0u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 1u * MM * STRIDE + 0u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 0u * MN * STRIDE + 1u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 1u * MN * STRIDE + 1u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 0u * MM * STRIDE + 1u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 1u * MM * STRIDE + 1u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 0u * MN * STRIDE + 2u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 1u * MN * STRIDE + 2u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 0u * MM * STRIDE + 2u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 1u * MM * STRIDE + 2u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
    }
    {
      let b0 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 0u * MN * STRIDE + 3u * MK / 4u, STRIDE);
      let b1 = subgroupMatrixLoad<Right, col_major>(&sw[gn], 1u * MN * STRIDE + 3u * MK / 4u, STRIDE);
      let a0 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 0u * MM * STRIDE + 3u * MK / 4u, STRIDE);
      c00 = subgroupMatrixMultiplyAccumulate(a0, b0, c00);
      c01 = subgroupMatrixMultiplyAccumulate(a0, b1, c01);
      let a1 = subgroupMatrixLoad<Left, row_major>(&sx[gm], 1u * MM * STRIDE + 3u * MK / 4u, STRIDE);
      c10 = subgroupMatrixMultiplyAccumulate(a1, b0, c10);
      c11 = subgroupMatrixMultiplyAccumulate(a1, b1, c11);
    }
  }
  subgroupMatrixStore<row_major>(&y, to + 0u * MM * width + 0u * MN, c00, width);
  subgroupMatrixStore<row_major>(&y, to + 0u * MM * width + 1u * MN, c01, width);
  subgroupMatrixStore<row_major>(&y, to + 1u * MM * width + 0u * MN, c10, width);
  subgroupMatrixStore<row_major>(&y, to + 1u * MM * width + 1u * MN, c11, width);
}

// The whole walk of a tile of tile64: `depth` in steps of 32, then the thread's four rows. The kernel
// gives bring(row0, col0, depth0, local), which stores both tiles, and put(row, col, sum).
fn tile_run(row0: u32, col0: u32, depth: u32, local: u32) {
  var sum = Tile();
  for (var k = 0u; k < depth; k += 32u) {
    workgroupBarrier();
    bring(row0, col0, k, local);
    workgroupBarrier();
    sum = tile_add(sum, local);
  }
  let row = row0 + 4u * (local / 16u);
  let col = col0 + 4u * (local % 16u);
  put(row, col, sum.r0);
  put(row + 1u, col, sum.r1);
  put(row + 2u, col, sum.r2);
  put(row + 3u, col, sum.r3);
}

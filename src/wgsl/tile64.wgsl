// A product of two tiles in workgroup memory: 64 rows by 64 columns, 32 deep, for 256 threads.
// A thread brings blocks of 4 by 4 and owns 4 rows by 4 columns of the result. 16 KiB.
var<workgroup> tile_x: array<vec4<f32>, 512>; // (32 deep, 64 rows)
var<workgroup> tile_w: array<vec4<f32>, 512>; // (32 deep, 64 columns)

struct Tile { r0: vec4<f32>, r1: vec4<f32>, r2: vec4<f32>, r3: vec4<f32> }

fn transpose4(t: Tile) -> Tile {
  return Tile(vec4<f32>(t.r0.x, t.r1.x, t.r2.x, t.r3.x), vec4<f32>(t.r0.y, t.r1.y, t.r2.y, t.r3.y),
              vec4<f32>(t.r0.z, t.r1.z, t.r2.z, t.r3.z), vec4<f32>(t.r0.w, t.r1.w, t.r2.w, t.r3.w));
}

// Stores the block of four rows (or columns) `quad` and depths 4·deep…; b holds depths by row.
fn tile_put_x(quad: u32, deep: u32, b: Tile) {
  tile_x[(4u * deep + 0u) * 16u + quad] = b.r0;
  tile_x[(4u * deep + 1u) * 16u + quad] = b.r1;
  tile_x[(4u * deep + 2u) * 16u + quad] = b.r2;
  tile_x[(4u * deep + 3u) * 16u + quad] = b.r3;
}
fn tile_put_w(quad: u32, deep: u32, b: Tile) {
  tile_w[(4u * deep + 0u) * 16u + quad] = b.r0;
  tile_w[(4u * deep + 1u) * 16u + quad] = b.r1;
  tile_w[(4u * deep + 2u) * 16u + quad] = b.r2;
  tile_w[(4u * deep + 3u) * 16u + quad] = b.r3;
}

fn tile_step(t: Tile, x: vec4<f32>, w: vec4<f32>) -> Tile {
  return Tile(fma(vec4<f32>(x.x), w, t.r0), fma(vec4<f32>(x.y), w, t.r1),
              fma(vec4<f32>(x.z), w, t.r2), fma(vec4<f32>(x.w), w, t.r3));
}

// Adds the tiles' product to a thread's part: rows 4·(local / 16), columns 4·(local % 16).
fn tile_add(t: Tile, local: u32) -> Tile {
  var sum = t;
  for (var k = 0u; k < 512u; k += 64u) { // four depths
    let x = k + local / 16u;
    let w = k + local % 16u;
    sum = tile_step(sum, tile_x[x], tile_w[w]);
    sum = tile_step(sum, tile_x[x + 16u], tile_w[w + 16u]);
    sum = tile_step(sum, tile_x[x + 32u], tile_w[w + 32u]);
    sum = tile_step(sum, tile_x[x + 48u], tile_w[w + 48u]);
  }
  return sum;
}

// Tiles of conv_gemm, of 16, 32 or 64: a thread sums 4 channels by 4 pixels over its team's depths.
struct Sums { c0: vec4<f32>, c1: vec4<f32>, c2: vec4<f32>, c3: vec4<f32> }
const TEAM = SIDE * SIDE; // threads

fn sums_step(s: Sums, d: u32, team: u32, mine: u32) -> Sums {
  let c = tile_w[team][d][mine / SIDE];
  let q = tile_x[team][d][mine % SIDE];
  return Sums(fma(vec4<f32>(c.x), q, s.c0), fma(vec4<f32>(c.y), q, s.c1),
              fma(vec4<f32>(c.z), q, s.c2), fma(vec4<f32>(c.w), q, s.c3));
}

fn sums_add(s: Sums, local: u32) -> Sums {
  var sums = s;
  let team = local / TEAM;
  let mine = local % TEAM;
  for (var d = 0u; d < DEPTH; d += 4u) {
    sums = sums_step(sums, d, team, mine);
    sums = sums_step(sums, d + 1u, team, mine);
    sums = sums_step(sums, d + 2u, team, mine);
    sums = sums_step(sums, d + 3u, team, mine);
  }
  return sums;
}

// Half of the teams keep their sums where w was, as (teams, TILE, SIDE), the others where x was.
fn keep_sums(local: u32, channel: u32, sum: vec4<f32>) {
  let team = local / TEAM;
  let row = team / 2u * TILE + local % TEAM / SIDE * 4u + channel;
  if (team % 2u == 0u) {
    tile_w[row / DEPTH][row % DEPTH][local % SIDE] = sum;
  } else {
    tile_x[row / DEPTH][row % DEPTH][local % SIDE] = sum;
  }
}

fn sums_put(s: Sums, local: u32) {
  if (TEAMS == 1u) {
    let channel = local / SIDE * 4u;
    let pixel = local % SIDE * 4u;
    put(channel, pixel, s.c0);
    put(channel + 1u, pixel, s.c1);
    put(channel + 2u, pixel, s.c2);
    put(channel + 3u, pixel, s.c3);
    return;
  }
  workgroupBarrier();
  keep_sums(local, 0u, s.c0);
  keep_sums(local, 1u, s.c1);
  keep_sums(local, 2u, s.c2);
  keep_sums(local, 3u, s.c3);
  workgroupBarrier();
  if (local < TILE * SIDE) {
    var sum = vec4<f32>(0.0);
    for (var row = local / SIDE; row < DEEP; row += TILE) {
      sum += tile_w[row / DEPTH][row % DEPTH][local % SIDE];
      sum += tile_x[row / DEPTH][row % DEPTH][local % SIDE];
    }
    put(local / SIDE, local % SIDE * 4u, sum);
  }
}

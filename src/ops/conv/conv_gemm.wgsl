// A convolution as a product: y[c, q] = Σ_k w[k, c] · x[k at q], where k runs over taps and input
// channels, and x is gathered as it is brought. A workgroup computes TILE channels by TILE pixels of a
// group. It brings 2048 numbers of both at a time, so the smaller the tile the deeper, and TEAMS of
// threads share the depth. What is brought next is under way while a tile is multiplied.
// Arrays are nested by what threads have of their own, so that inner loops have constant indices only.
// uses: grid either conv_params conv_walk conv_put conv_end not_a_number
const WG = 256u;
const TILE = 64u;
const TEAMS = 1u;
const SIDE = TILE / 4u;     // quads
const DEEP = 2048u / TILE;
const DEPTH = DEEP / TEAMS; // of a team
const STRIDE = WG / TILE;   // depths between those of x that a thread brings
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read>       w: array<Quad>;   // (taps, input channels, output channels)
@group(0) @binding(2) var<storage, read>       bias: array<u32>; // (all channels)
@group(0) @binding(3) var<storage, read>       rest: array<Rest>; // as y
@group(0) @binding(4) var<storage, read_write> y: array<Out>;
@group(0) @binding(5) var<uniform>             p: Params;
var<workgroup> tile_w: array<array<array<vec4<f32>, SIDE>, DEPTH>, TEAMS>; // later sums
var<workgroup> tile_x: array<array<array<vec4<f32>, SIDE>, DEPTH>, TEAMS>;

struct Eight { a: vec4<f32>, b: vec4<f32> }
struct Brought { w: Eight, x: Eight }
var<private> channel0: u32; // the tile's first of the group, and its first pixel
var<private> pixel0: u32;
var<private> group0: u32;

fn w_quad(local: u32, k: u32) -> vec4<f32> {
  let quad = channel0 / 4u + local % SIDE;
  let row = k + local / SIDE;
  if (4u * quad >= p.oc || row >= p.ic * p.taps) {
    return vec4<f32>(0.0);
  }
  var at = tap_in_w(group0, vec3<u32>()) + row * p.w_row;
  if (p.dense == 0u) {
    let tap = row / p.ic;
    at = tap_in_w(group0, vec3<u32>(tap / p.taps_x / p.taps_y, tap / p.taps_x % p.taps_y,
                                    tap % p.taps_x)) + row % p.ic * p.w_row;
  }
  return quad_get(w[at + quad]);
}

fn x_next(walk: ptr<function, Walk>) -> f32 {
  let v = walk_get(walk);
  walk_on(walk, STRIDE);
  return v;
}

// The next eight of a pixel's column; mostly they belong to one tap.
fn x_eight(walk: ptr<function, Walk>) -> Eight {
  var v = Eight();
  if ((*walk).channel + 7u * STRIDE < p.ic) {
    if ((*walk).inside) {
      let i = (*walk).at + (*walk).channel * p.in_plane;
      let s = STRIDE * p.in_plane;
      v.a = vec4<f32>(x_at(i), x_at(i + s), x_at(i + 2u * s), x_at(i + 3u * s));
      v.b = vec4<f32>(x_at(i + 4u * s), x_at(i + 5u * s), x_at(i + 6u * s), x_at(i + 7u * s));
    }
    walk_on(walk, 8u * STRIDE);
    return v;
  }
  v.a.x = x_next(walk);
  v.a.y = x_next(walk);
  v.a.z = x_next(walk);
  v.a.w = x_next(walk);
  v.b.x = x_next(walk);
  v.b.y = x_next(walk);
  v.b.z = x_next(walk);
  v.b.w = x_next(walk);
  return v;
}

fn bring(walk: ptr<function, Walk>, local: u32, k: u32) -> Brought {
  return Brought(Eight(w_quad(local, k), w_quad(local, k + DEEP / 2u)), x_eight(walk));
}

fn keep_x(local: u32, deep: u32, v: f32) {
  let d = deep + local / TILE;
  tile_x[d / DEPTH][d % DEPTH][local % TILE / 4u][local % 4u] = v;
}

fn keep(b: Brought, local: u32) {
  let d = local / SIDE;
  let e = d + DEEP / 2u;
  tile_w[d / DEPTH][d % DEPTH][local % SIDE] = b.w.a;
  tile_w[e / DEPTH][e % DEPTH][local % SIDE] = b.w.b;
  keep_x(local, 0u, b.x.a.x);
  keep_x(local, STRIDE, b.x.a.y);
  keep_x(local, 2u * STRIDE, b.x.a.z);
  keep_x(local, 3u * STRIDE, b.x.a.w);
  keep_x(local, 4u * STRIDE, b.x.b.x);
  keep_x(local, 5u * STRIDE, b.x.b.y);
  keep_x(local, 6u * STRIDE, b.x.b.z);
  keep_x(local, 7u * STRIDE, b.x.b.w);
}

// Four neighbouring pixels of a channel of the tile.
fn put(channel: u32, pixel: u32, sum: vec4<f32>) {
  if (channel0 + channel < p.oc) {
    conv_put(group0 * p.oc + channel0 + channel, pixel0 + pixel, sum);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let across = (p.pixels + TILE - 1u) / TILE;
  let down = (p.oc + TILE - 1u) / TILE;
  if (index >= across * down * p.groups) {
    return;
  }
  pixel0 = index % across * TILE;
  channel0 = index / across % down * TILE;
  group0 = index / (across * down);
  var walk = walk_from(pixel0 + local % TILE, group0, local / TILE);
  var next = bring(&walk, local, 0u);
  var sums = Sums();
  for (var k = 0u; k < p.ic * p.taps; k += DEEP) {
    workgroupBarrier();
    keep(next, local);
    workgroupBarrier();
    if (k + DEEP < p.ic * p.taps) {
      next = bring(&walk, local, k + DEEP);
    }
    sums = sums_add(sums, local);
  }
  sums_put(sums, local);
}

// y as in q8ta_plain, as a product: rows are channels of y, columns its places, k runs over taps and
// channels of x, four of them a word. A workgroup computes a tile of 4 · T by 4 · T of one group.
// Taps outside x are x_zero there. Wants rows of w in words, zeros behind the last k.
// uses: grid either apart q8_bytes q8_taps q8_tile q8_real q8_requant q8_conv_params
const WG = 256u;
const T = 16u;
const WHOLE = true; // in_channels % 4 == 0: all of a word is at one tap
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (batch, groups · in_channels, in_size)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (groups · out_channels, w_out bytes)
@group(0) @binding(2) var<storage, read>       sums: array<i32>;   // (groups · out_channels), of rows of w
@group(0) @binding(3) var<storage, read>       scales: array<u32>;
@group(0) @binding(4) var<storage, read>       bias: array<u32>;   // (groups · out_channels)
@group(0) @binding(5) var<storage, read_write> y: array<Out>;      // (batch, groups · out_channels, out_size)
@group(0) @binding(6) var<uniform>             p: Params;

// A quad of columns: images and places of y.
struct Quad {
  image: vec4<u32>,
  down: vec4<u32>,
  across: vec4<u32>,
}
fn quad_at(column: u32) -> Quad {
  let plane = p.out_size.x * p.out_size.y;
  let at = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.batch * plane - 1u));
  return Quad(at / plane, at % plane / p.out_size.y, at % p.out_size.y);
}

// Byte k of a column, wherever its tap is.
fn x_any(group: u32, image: u32, place: vec2<u32>, k: u32) -> u32 {
  let tap = k / p.in_channels;
  let channel = (image * p.groups + group) * p.in_channels + k % p.in_channels;
  let found = q8_tap(place, vec2<u32>(tap / p.kernel.y, tap % p.kernel.y));
  if (!found.inside) {
    return u32(p.x_zero) & 255u;
  }
  return x_byte((channel * p.in_size.x + found.at.x) * p.in_size.y + found.at.y);
}
fn x_words_any(group: u32, quad: Quad, k: u32) -> vec4<u32> {
  var words = vec4<u32>();
  for (var i = 0u; i < 16u; i++) {
    let at = vec2<u32>(quad.down[i / 4u], quad.across[i / 4u]);
    words[i / 4u] |= x_any(group, quad.image[i / 4u], at, 4u * k + i % 4u) << (8u * (i % 4u));
  }
  return words;
}

// Word k of four columns: four channels of x at a tap.
fn x_words(group: u32, quad: Quad, k: u32) -> vec4<u32> {
  if (!WHOLE) {
    return x_words_any(group, quad, k);
  }
  let plane = p.in_size.x * p.in_size.y;
  let deep = p.in_channels / 4u;
  let tap = k / deep;
  let channel = group * p.in_channels + k % deep * 4u;
  var at: vec4<u32>;
  var inside: vec4<bool>;
  for (var i = 0u; i < 4u; i++) {
    let found = q8_tap(vec2<u32>(quad.down[i], quad.across[i]),
                       vec2<u32>(tap / p.kernel.y, tap % p.kernel.y));
    at[i] = (quad.image[i] * p.groups * p.in_channels + channel) * plane +
            found.at.x * p.in_size.y + found.at.y;
    inside[i] = found.inside;
  }
  if (all(inside) && all(at == vec4<u32>(at.x) + vec4<u32>(0u, 1u, 2u, 3u))) {
    return turned(vec4<u32>(x_bytes(at.x), x_bytes(at.x + plane), x_bytes(at.x + 2u * plane),
                            x_bytes(at.x + 3u * plane)));
  }
  var words = vec4<u32>((u32(p.x_zero) & 255u) * 0x1010101u);
  for (var i = 0u; i < 4u; i++) {
    if (inside[i]) {
      words[i] = x_byte(at[i]) | (x_byte(at[i] + plane) << 8u) |
                 (x_byte(at[i] + 2u * plane) << 16u) | (x_byte(at[i] + 3u * plane) << 24u);
    }
  }
  return words;
}

fn w_word(group: u32, row: u32, k: u32) -> u32 {
  return w[(group * p.out_channels + min(row, p.out_channels - 1u)) * (p.w_out / 4u) + k];
}

// Quads of rows of w, four words each, and of columns: every thread has the same quad each time.
fn bring(group: u32, r0: u32, columns: Quad, k0: u32, local: u32) {
  for (var i = local; i < 2u * T * DEEP; i += WG) {
    let deep = i / T % DEEP;
    let quad = i % T;
    let k = k0 + deep;
    var words = vec4<u32>();
    if (i < T * DEEP) {
      if (k < p.words) {
        let r = r0 + 4u * quad;
        words = vec4<u32>(w_word(group, r, k), w_word(group, r + 1u, k), w_word(group, r + 2u, k),
                          w_word(group, r + 3u, k));
      }
      q8_a[deep * T + quad] = words;
    } else {
      if (k < p.words) {
        words = x_words(group, columns, k);
      }
      q8_b[deep * T + quad] = words;
    }
  }
}

// A row of a quad; one by one where it ends inside or runs into another image.
fn put(group: u32, row: u32, column: u32, sum: vec4<i32>) {
  let plane = p.out_size.x * p.out_size.y;
  let columns = p.batch * plane;
  if (row >= p.out_channels || column >= columns) {
    return;
  }
  let channel = group * p.out_channels + row;
  let v = q8_real(sum - vec4<i32>(p.x_zero * sums[channel]), vec4<u32>(channel));
  let step = p.groups * p.out_channels;
  let at = (column / plane * step + channel) * plane + column % plane;
  if (column % plane + 4u <= plane) {
    q8_put(at, 4u, v);
    return;
  }
  for (var i = 0u; i < 4u && column + i < columns; i++) {
    let c = column + i;
    q8_put((c / plane * step + channel) * plane + c % plane, 1u, vec4<f32>(v[i]));
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(workgroup, workgroups);
  let down = (p.out_channels + 4u * T - 1u) / (4u * T); // tiles of channels: neighbours share x
  let across = (p.batch * p.out_size.x * p.out_size.y + 4u * T - 1u) / (4u * T);
  let r0 = index % down * 4u * T;
  let c0 = index / down % across * 4u * T;
  let group = index / (down * across);
  if (group >= p.groups) {
    return;
  }
  let columns = quad_at(c0 + 4u * (local % T));
  var sum = Sums();
  for (var k = 0u; k < p.words; k += DEEP) {
    workgroupBarrier();
    bring(group, r0, columns, k, local);
    workgroupBarrier();
    sum = q8_add(sum, local);
  }
  let r = r0 + 4u * (local / T);
  let c = c0 + 4u * (local % T);
  put(group, r, c, sum.r0);
  put(group, r + 1u, c, sum.r1);
  put(group, r + 2u, c, sum.r2);
  put(group, r + 3u, c, sum.r3);
}

// y as in q8ta_plain where every channel is a group: y[b, c, i, j] = Σ (x[b, c, i', j'] − x_zero) · w[c, tap].
// Four neighbouring taps are a word of w. One thread per word of y: where its four places are in one
// row and next to each other in x, their taps are 7 neighbours in x, 8 bytes.
// uses: grid either apart q8_bytes q8_real q8_requant q8_conv_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;      // (batch, groups, in_size)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (groups, down, words)
@group(0) @binding(2) var<storage, read>       sums: array<i32>;   // (groups)
@group(0) @binding(3) var<storage, read>       scales: array<u32>; // (groups)
@group(0) @binding(4) var<storage, read>       bias: array<u32>;   // (groups)
@group(0) @binding(5) var<storage, read_write> y: array<u32>;      // (batch, groups, out_size)
@group(0) @binding(6) var<uniform>             p: Params;

fn zeros() -> u32 { return (u32(p.x_zero) & 255u) * 0x1010101u; }

// Four taps from column `left` on, which may wrap below 0, of the row that starts at `row`.
fn taps(row: u32, left: u32) -> u32 {
  if (p.dilation.y == 1u && left < p.in_size.y && left + 3u < p.in_size.y) {
    return x_bytes(row + left);
  }
  var word = zeros();
  for (var i = 0u; i < 4u; i++) {
    let column = left + i * p.dilation.y;
    if (column < p.in_size.y) {
      let at = row + column;
      word = insertBits(word, x[at / 4u] >> (8u * (at % 4u)), 8u * i, 8u);
    }
  }
  return word;
}

// Column j of the row of y: Σ x · w over the taps of one row of the kernel.
fn one(row: u32, inside: bool, w_at: u32, j: u32) -> i32 {
  var sum = 0;
  for (var i = 0u; i < p.words; i++) {
    let left = j * p.stride.y - p.padding.y + 4u * i * p.dilation.y;
    var word = zeros();
    if (inside) {
      word = taps(row, left);
    }
    sum += dot4I8Packed(word, w[w_at + i]);
  }
  return sum;
}

// Columns j to j + 3, one step apart in x.
fn four(row: u32, inside: bool, w_at: u32, j: u32) -> vec4<i32> {
  var sum = vec4<i32>();
  for (var i = 0u; i < p.words; i++) {
    let left = j - p.padding.y + 4u * i;
    var low = zeros();
    var high = low;
    if (inside) {
      low = taps(row, left);
      high = taps(row, left + 4u);
    }
    let k = w[w_at + i];
    sum += vec4<i32>(dot4I8Packed(low, k), dot4I8Packed((low >> 8u) | (high << 24u), k),
                     dot4I8Packed((low >> 16u) | (high << 16u), k),
                     dot4I8Packed((low >> 24u) | (high << 8u), k));
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  let plane = p.out_size.x * p.out_size.y;
  let numel = p.batch * p.groups * plane;
  if (4u * word >= numel) {
    return;
  }
  let at = min(4u * vec4<u32>(word) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(numel - 1u));
  let image = at / plane; // and channel
  let down = at % plane / p.out_size.y;
  let across = at % p.out_size.y;
  let near = p.stride.y == 1u && p.dilation.y == 1u && across.x + 3u == across.w;
  var sum = vec4<i32>();
  for (var u = 0u; u < p.kernel.x; u++) {
    let line = down * p.stride.x + u * p.dilation.x - p.padding.x; // wraps below 0
    let row = (image * p.in_size.x + line) * p.in_size.y;
    let inside = line < vec4<u32>(p.in_size.x);
    let w_at = (image % p.groups * p.kernel.x + u) * p.words;
    if (near) {
      sum += four(row.x, inside.x, w_at.x, across.x);
    } else {
      for (var i = 0u; i < 4u; i++) {
        sum[i] += one(row[i], inside[i], w_at[i], across[i]);
      }
    }
  }
  let channel = image % p.groups;
  let offset = p.x_zero * vec4<i32>(sums[channel.x], sums[channel.y], sums[channel.z], sums[channel.w]);
  y[word] = requant(q8_real(sum - offset, channel));
}

// y[m, n] = Σ_k x[m, k] · (code[n, k] − 8) · scale[n, k / group] + bias[n], for few rows m.
// A workgroup takes one m and p.blocks times WG / L · 4 rows of the weight. L threads share four of
// those rows: a thread reads every L-th unit of them, 32 codes in one load of 16 bytes.
// Wants k % 32 == 0; group 32 · 2^i or all of k; rows of y that start on words.
// uses: grid either
const WG = 256u;
const L = 64u;
struct Params {
  m: u32,
  n: u32,      // rows of the weight here: p.first of cols and on
  k: u32,
  stride: u32, // bytes of a weight row
  group: u32,
  groups: u32, // scales of a row
  first: u32,
  cols: u32,   // of y
  bias: u32,   // 0: none, else 1 + `half`
  half: u32,   // of the scales
  blocks: u32,
  shift: u32,  // unit >> shift is its group
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;      // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;    // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;       // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

// L units of x; quad j of unit u at 8u + (j ^ u % 8), so that neighbours never meet in a bank.
var<workgroup> xs: array<vec4<f32>, L * 8u>;

// A nibble in place, under the exponent of 2^23, is the number 2^23 + 16^i · code: subtracting
// leaves 16^i · (code − 8) exactly, and x carries the factor 16^-i.
const MASK = vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u);
const EXPONENT = vec4<u32>(0x4b000000u);
const OFFSET = vec4<f32>(8388616.0, 8388736.0, 8390656.0, 8421376.0);
const FACTOR = vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);

fn add_word(sum: vec4<f32>, q: u32, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
  let a = bitcast<vec4<f32>>((vec4<u32>(q) & MASK) | EXPONENT) - OFFSET;
  let b = bitcast<vec4<f32>>((vec4<u32>(q >> 16u) & MASK) | EXPONENT) - OFFSET;
  return fma(b, high, fma(a, low, sum));
}

// One word of each of the four rows.
struct Sums { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }
fn add_column(t: Sums, q: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> Sums {
  return Sums(add_word(t.a, q.x, low, high), add_word(t.b, q.y, low, high),
              add_word(t.c, q.z, low, high), add_word(t.d, q.w, low, high));
}

fn stage(m: u32, unit: u32, local: u32) {
  for (var i = local; i < L * 8u; i += WG) {
    let at = unit * 8u + i;
    let u = i / 8u;
    var v = vec4<f32>(0.0);
    if (at < p.k / 4u) {
      v = quad_get(x[m * (p.k / 4u) + at]) * FACTOR;
    }
    xs[u * 8u + ((i ^ u) & 7u)] = v;
  }
}

fn scale(row: u32, unit: u32) -> f32 {
  let i = row * p.groups + (unit >> p.shift);
  return elem_get(scales[i / ELEMS], i % ELEMS);
}

fn put(m: u32, row: u32, sum: vec4<f32>) {
  for (var i = 0u; i < 4u && row + i < p.n; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let n = p.first + min(row + i + lane, p.n - 1u);
      var v = sum[i + lane];
      if (p.bias != 0u) {
        v += either_get(bias[either_word(n, p.bias - 1u)], n, p.bias - 1u);
      }
      word = elem_put(word, lane, v);
    }
    y[(m * p.cols + p.first + row + i) / ELEMS] = word;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = min(index % p.m, p.m - 1u);
  let units = p.k / 32u;
  let lane = local % L;
  for (var block = 0u; block < p.blocks; block++) {
    let row = ((index / p.m * p.blocks + block) * (WG / L) + local / L) * 4u;
    let rows = min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(p.n - 1u));
    var sum = vec4<f32>(0.0);
    for (var unit = 0u; unit < units; unit += L) {
      let u = min(unit + lane, units - 1u); // past the end x is 0
      let q0 = w[rows.x * units + u]; // on their way while x is staged
      let q1 = w[rows.y * units + u];
      let q2 = w[rows.z * units + u];
      let q3 = w[rows.w * units + u];
      let s = vec4<f32>(scale(rows.x, u), scale(rows.y, u), scale(rows.z, u), scale(rows.w, u));
      if (block == 0u || units > L) {
        workgroupBarrier();
        stage(m, unit, local);
        workgroupBarrier();
      }
      let at = lane * 8u;
      let key = lane & 7u;
      var d = Sums();
      d = add_column(d, vec4<u32>(q0.x, q1.x, q2.x, q3.x), xs[at + key], xs[at + (1u ^ key)]);
      d = add_column(d, vec4<u32>(q0.y, q1.y, q2.y, q3.y), xs[at + (2u ^ key)], xs[at + (3u ^ key)]);
      d = add_column(d, vec4<u32>(q0.z, q1.z, q2.z, q3.z), xs[at + (4u ^ key)], xs[at + (5u ^ key)]);
      d = add_column(d, vec4<u32>(q0.w, q1.w, q2.w, q3.w), xs[at + (6u ^ key)], xs[at + (7u ^ key)]);
      let one = vec4<f32>(1.0);
      sum = fma(s, vec4<f32>(dot(d.a, one), dot(d.b, one), dot(d.c, one), dot(d.d, one)), sum);
    }
    sum = lanes_sum(sum, local);
    if (lane == 0u) {
      put(m, row, sum);
    }
  }
}

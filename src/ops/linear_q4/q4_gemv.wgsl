// y[m, n] = Σ_k x[m, k] · (code[n, k] − 8) · scale[n, k / group] + bias[n], for few rows m.
// A workgroup takes one m and p.blocks times SETS · R rows of the weight.
// Wants k % 32 == 0; group 32 · 2^i or all of k; rows of y that start on words.
// uses: grid either q4_sets q4_params
const WG = 256u;
const T = 64u;
const U = 1u;
const WORDS = 1u; // of y, that a thread writes
@group(0) @binding(0) var<storage, read>       x: array<Quad>;      // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;    // (cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;       // (m, cols)
@group(0) @binding(5) var<uniform>             p: Params;

fn staged(m: u32, at: u32) -> vec4<f32> { return quad_get(x[m * (p.k / 4u) + at]); }

fn put(m: u32, first: u32, first_at: u32) {
  for (var i = 0u; i < WORDS * ELEMS && first + i < p.n; i += ELEMS) {
    let row = first + i;
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let n = p.first + min(row + lane, p.n - 1u);
      var v = sums_total(first_at + i + lane);
      if (p.bias != 0u) {
        v += either_get(bias[either_word(n, p.bias - 1u)], n, p.bias - 1u);
      }
      word = elem_put(word, lane, v);
    }
    y[(m * p.cols + p.first + row) / ELEMS] = word;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = min(index % p.m, p.m - 1u);
  let units = p.k / 32u;
  for (var block = 0u; block < p.blocks; block++) {
    let base = (index / p.m * p.blocks + block) * SETS * R; // rows past the last are not written
    let row = base + local / T * R;
    let half = row + R / 2u;
    let rows = Rows(row * units, half * units, row * p.groups, half * p.groups, units, p.groups, p.shift);
    sums_put(q4_rows(m, rows, units, block == 0u, local), local);
    sums_barrier();
    let at = local * WORDS * ELEMS;
    if (at < SETS * R && base + at < p.n) {
      put(m, base + at, at);
    }
    sums_barrier();
  }
}

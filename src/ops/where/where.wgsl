// y = condition ? a : b, elementwise over a loop nest in which operands may repeat (stride 0).
// One thread per word of y (ELEMS elements of BITS bits): it owns whole words also where rows end.
// uses: grid
override WG: u32 = 64u;
const BITS = 32u; // of an element of a, b and y
struct Params {
  n: u32,    // elements of y
  rank: u32, // of the loop nest
  pad: vec2<u32>,
  dims: array<vec4<u32>, 2>, // outermost first
  stride_c: array<vec4<u32>, 2>,
  stride_a: array<vec4<u32>, 2>,
  stride_b: array<vec4<u32>, 2>,
}
@group(0) @binding(0) var<storage, read>       condition: array<u32>; // bytes
@group(0) @binding(1) var<storage, read>       a: array<u32>;
@group(0) @binding(2) var<storage, read>       b: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

fn element(e: u32) -> u32 {
  var rest = e;
  var at = vec3<u32>(); // in condition, a, b
  for (var d = p.rank; d > 0u; d--) {
    let word = (d - 1u) / 4u;
    let lane = (d - 1u) % 4u;
    let c = rest % p.dims[word][lane];
    rest /= p.dims[word][lane];
    at += c * vec3<u32>(p.stride_c[word][lane], p.stride_a[word][lane], p.stride_b[word][lane]);
  }
  if (extractBits(condition[at.x / 4u], at.x % 4u * 8u, 8u) != 0u) {
    return extractBits(a[at.y / ELEMS], at.y % ELEMS * BITS, BITS);
  }
  return extractBits(b[at.z / ELEMS], at.z % ELEMS * BITS, BITS);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    let e = min(word * ELEMS + lane, p.n - 1u);
    packed = insertBits(packed, element(e), lane * BITS, BITS);
  }
  y[word] = packed;
}

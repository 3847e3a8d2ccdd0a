// y[o] = x[floor(o * ratio)] in both dims of a plane.  One thread per word of y (ELEMS elements).
// uses: grid upsample_params
override WG: u32 = 64u;
const BITS = 32u; // of an element
@group(0) @binding(0) var<storage, read>       x: array<u32>; // (planes, x_size)
@group(0) @binding(1) var<storage, read_write> y: array<u32>; // (planes, y_size)
@group(0) @binding(2) var<uniform>             p: Params;

const ELEMS = 32u / BITS;

fn source(o: u32, ratio: f32, size: u32) -> u32 { return min(u32(f32(o) * ratio), size - 1u); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = grid_group(group, groups) * WG + local;
  if (word * ELEMS >= p.n) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    let at = place_of(min(word * ELEMS + lane, p.n - 1u));
    let row = source(at.row, p.ratio_h, p.x_size.x);
    let e = at.first + row * p.x_size.y + source(at.col, p.ratio_w, p.x_size.y);
    packed = insertBits(packed, extractBits(x[e / ELEMS], e % ELEMS * BITS, BITS), lane * BITS, BITS);
  }
  y[word] = packed;
}

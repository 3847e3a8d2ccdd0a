// y[c] from what reduce_part.wgsl found in the parts of its elements.  One workgroup per word of y.
// uses: grid reduce_best
override WG: u32 = 64u;
struct Params {
  numel: u32, // of y
  parts: u32,
  scale: f32,
}
@group(0) @binding(0) var<storage, read>       parts: array<vec2<u32>>; // (p.parts, numel): value, place
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform>             p: Params;

fn joined(e: u32, local: u32) -> Best {
  var best = nothing();
  for (var k = local; k < p.parts; k += WG) {
    let part = parts[k * p.numel + e];
    best = combine(best, Best(bitcast<Elem>(part.x), part.y));
  }
  return shared_best(best, local);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (g * OUT >= p.numel) {
    return;
  }
  var packed = 0u;
  for (var lane = 0u; lane < OUT; lane++) {
    packed = put(packed, lane, joined(min(g * OUT + lane, p.numel - 1u), local));
  }
  if (local == 0u) {
    y[g] = packed;
  }
}

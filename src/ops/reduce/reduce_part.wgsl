// parts[k][c] = what reduce.wgsl finds for y[c] in the kth part of its elements.
// GROUP: one workgroup for each, whose threads share the elements; else one thread.
// uses: grid reduce_best reduce_params
override WG: u32 = 64u;
const GROUP = true;
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> parts: array<vec2<u32>>; // (p.parts, numel): value, place
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (GROUP) {
    if (g < p.numel * p.parts) {
      let first = g / p.numel * p.each;
      let end = min(p.count, first + p.each);
      let best = shared_best(partial(kept_base(g % p.numel), first + local, end, WG), local);
      if (local == 0u) {
        parts[g] = vec2<u32>(bitcast<u32>(best.value), best.at);
      }
    }
  } else {
    let item = g * WG + local;
    if (item < p.numel * p.parts) {
      let first = item / p.numel * p.each;
      let end = min(p.count, first + p.each);
      let best = partial(kept_base(item % p.numel), first, end, 1u);
      parts[item] = vec2<u32>(bitcast<u32>(best.value), best.at);
    }
  }
}

// The range of a part of a block, as (−low, high). A workgroup takes PART elements.
// uses: grid block_range qparams_params
const WG = 256u;
const PART = 8192u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2<f32>>; // (m, parts)
@group(0) @binding(2) var<uniform>             p: Params;
var<workgroup> ranges: array<vec2<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let begin = index % p.parts * PART;
  let block = min(index / p.parts, p.m - 1u);
  ranges[local] = block_range(block, begin + local, min(begin + PART, p.k), WG);
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local < half) {
      ranges[local] = max(ranges[local], ranges[local + half]);
    }
  }
  if (local == 0u && index < p.m * p.parts) {
    y[index] = ranges[0];
  }
}

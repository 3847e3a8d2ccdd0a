// sizes[0] = smallest, sizes[1] = largest subgroup seen.  One workgroup; sizes starts as (~0, 0).
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read_write> sizes: array<atomic<u32>, 2>;

@compute @workgroup_size(WG)
fn main(@builtin(subgroup_size) size: u32) {
  atomicMin(&sizes[0], size);
  atomicMax(&sizes[1], size);
}

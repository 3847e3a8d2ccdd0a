// cache_append for 2-byte elements that start or end inside a word.  One thread per word of the
// cache from the first element written to the last; what lies between stays.
// uses: grid cache_append_params
const WG = 64u;
@group(0) @binding(0) var<storage, read>       x: array<u32>;     // (batches, batch)
@group(0) @binding(1) var<storage, read_write> cache: array<u32>; // (batches, stride)
@group(0) @binding(2) var<uniform>             p: Params;

// The 16 bits for element e of the cache, of which `old` are there.
fn element(e: u32, old: u32) -> u32 {
  let at = e % p.stride;
  let source = e / p.stride * p.batch + at - p.start;
  if (at < p.start || at >= p.start + p.batch || source >= p.n) {
    return old;
  }
  return (x[source / 2u] >> (source % 2u * 16u)) & 0xffffu;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word = p.start / 2u + grid_group(group, groups) * WG + local;
  let end = (p.n / p.batch - 1u) * p.stride + p.start + p.batch; // behind the last element
  if (word * 2u >= end) {
    return;
  }
  let old = cache[word];
  cache[word] = element(word * 2u, old & 0xffffu) | (element(word * 2u + 1u, old >> 16u) << 16u);
}

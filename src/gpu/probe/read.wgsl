// Reads n vec4 words and keeps their xor per thread: read bandwidth.  Thread t of all T threads
// reads x[t], x[t + T], …, so neighbours read neighbours.
// uses: grid
override WG: u32 = 256u;
struct Params { n: u32, threads: u32 }
@group(0) @binding(0) var<storage, read>       x: array<vec4<u32>>; // (n)
@group(0) @binding(1) var<storage, read_write> y: array<u32>;       // (threads)
@group(0) @binding(2) var<uniform>             p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let t = grid_group(group, groups) * WG + local;
  if (t >= p.threads) {
    return;
  }
  var sum = vec4<u32>();
  for (var i = t; i < p.n; i += p.threads) {
    sum ^= x[i];
  }
  y[t] = sum.x ^ sum.y ^ sum.z ^ sum.w;
}

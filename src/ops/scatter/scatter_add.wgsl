// sums[e] += the sources of all updates of e.  One thread per update.
// uses: grid scatter_params
override WG: u32 = 64u;
@group(0) @binding(0) var<storage, read>       index: array<i32>;
@group(0) @binding(1) var<storage, read>       from_: array<u32>;        // the source
@group(0) @binding(2) var<storage, read_write> sums: array<atomic<u32>>; // (numel)
@group(0) @binding(3) var<uniform>             p: Params;

const FLOATS = true;

fn add_float(at: u32, v: f32) {
  var old = atomicLoad(&sums[at]);
  loop {
    let r = atomicCompareExchangeWeak(&sums[at], old, bitcast<u32>(bitcast<f32>(old) + v));
    if (r.exchanged) {
      break;
    }
    old = r.old_value;
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let j = grid_group(group, groups) * WG + local;
  if (j >= p.n) {
    return;
  }
  let u = update_of(j);
  let i = u32(index[u.index]);
  if (i >= p.axis) {
    return;
  }
  let at = u.at + i * p.axis_stride;
  let v = elem_get(from_[u.source / ELEMS], u.source % ELEMS);
  if (FLOATS) {
    add_float(at, f32(v));
  } else {
    atomicAdd(&sums[at], bitcast<u32>(v));
  }
}

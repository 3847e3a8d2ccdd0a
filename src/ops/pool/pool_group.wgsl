// Pooling: a window that the WG threads of a workgroup share.
var<workgroup> pool_parts: array<Pooled, WG>;

// What one thread sees: every WG-th element from `local` on.
fn pool_some(w: Window, local: u32) -> Pooled {
  var some = pool_begin(place_in(w.first));
  let step = select(p.dilation.xyz, vec3<u32>(1u), ADAPTIVE);
  let n = w.taps.x * w.taps.y * w.taps.z;
  for (var start = local; start < n; start += WG * 4096u) { // some devices stop long loops
    let to = min(n, start + WG * 4096u);
    for (var t = start; t < to; t += WG) {
      let row = t / w.taps.z;
      let c = w.first + vec3<u32>(row / w.taps.y, row % w.taps.y, t % w.taps.z) * step;
      some = pool_add(some, tap(w, c), place_in(c), w.divisor);
    }
  }
  return some;
}

// Every thread gets the result. Uniform control flow.
fn pool_together(w: Window, local: u32) -> Pooled {
  workgroupBarrier(); // the last window's parts have been read
  pool_parts[local] = pool_some(w, local);
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local < half) {
      pool_parts[local] = pool_join(pool_parts[local], pool_parts[local + half]);
    }
  }
  workgroupBarrier();
  return pool_parts[0];
}

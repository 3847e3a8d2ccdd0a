// For each line of x (outer, size, inner) along `size`: its maximum and the sum of e^(x - maximum).
// GROUP: one workgroup per line; else one thread per line, neighbours side by side.
// uses: grid
override WG: u32 = 64u;
const GROUP = true;
struct Params {
  lines: u32, // outer * inner
  size: u32,
  inner: u32,
  pad: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>; // (lines)
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> shared_values: array<f32, WG>;

fn at(line: u32, i: u32) -> f32 {
  let e = (line / p.inner * p.size + i) * p.inner + line % p.inner;
  return elem_get(x[e / ELEMS], e % ELEMS);
}

// The maximum (seen = false) or the sum above it of what one thread sees of a line.
fn partial(line: u32, first: u32, step: u32, seen: bool, most: f32) -> f32 {
  var r = select(at(line, 0u), 0.0, seen);
  for (var start = first; start < p.size; start += step * 4096u) { // some devices stop long loops
    let end = min(p.size, start + step * 4096u);
    for (var i = start; i < end; i += step) {
      let v = at(line, i);
      if (seen) { r += exp(v - most); } else { r = max(r, v); }
    }
  }
  return r;
}

fn shared_value(mine: f32, local: u32, seen: bool) -> f32 {
  workgroupBarrier(); // the last values have been read
  shared_values[local] = mine;
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (local < half) {
      let a = shared_values[local];
      let b = shared_values[local + half];
      shared_values[local] = select(max(a, b), a + b, seen);
    }
  }
  workgroupBarrier();
  return shared_values[0];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let g = grid_group(group, groups);
  if (GROUP) {
    if (g < p.lines) {
      let most = shared_value(partial(g, local, WG, false, 0.0), local, false);
      let sum = shared_value(partial(g, local, WG, true, most), local, true);
      if (local == 0u) {
        stats[g] = vec2<f32>(most, sum);
      }
    }
  } else {
    let line = g * WG + local;
    if (line < p.lines) {
      let most = partial(line, 0u, 1u, false, 0.0);
      stats[line] = vec2<f32>(most, partial(line, 0u, 1u, true, most));
    }
  }
}

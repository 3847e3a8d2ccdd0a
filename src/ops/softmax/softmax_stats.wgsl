// For each part of each line of x (outer, size, inner) along `size`: its maximum and the sum of
// e^(x - maximum), which counts from 0 if there is nothing but -infinity.
// GROUP: one workgroup for each; else one thread, neighbours side by side.
// uses: grid
override WG: u32 = 64u;
const GROUP = true;
struct Params {
  lines: u32, // outer * inner
  size: u32,
  inner: u32,
  parts: u32, // of a line,
  each: u32,  // so many elements in one
}
@group(0) @binding(0) var<storage, read>       x: array<u32>;
@group(0) @binding(1) var<storage, read_write> stats: array<vec2<f32>>; // (parts, lines)
@group(0) @binding(2) var<uniform>             p: Params;

var<workgroup> shared_values: array<f32, WG>;

fn at(line: u32, i: u32) -> f32 {
  let e = (line / p.inner * p.size + i) * p.inner + line % p.inner;
  return elem_get(x[e / ELEMS], e % ELEMS);
}

// The maximum (seen = false) or the sum above it of what one thread sees of a part of a line.
fn partial(line: u32, start: u32, end: u32, offset: u32, step: u32, seen: bool, most: f32) -> f32 {
  var r = select(at(line, start), 0.0, seen);
  for (var i = start + offset; i < end; i += step) {
    let v = at(line, i);
    if (seen) { r += exp(v - most); } else { r = max(r, v); }
  }
  return r;
}

fn base_of(most: f32) -> f32 { return select(most, 0.0, most < -3.4028234e38); }

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
    if (g < p.lines * p.parts) {
      let line = g % p.lines;
      let start = g / p.lines * p.each;
      let end = min(p.size, start + p.each);
      let most = shared_value(partial(line, start, end, local, WG, false, 0.0), local, false);
      let sum = shared_value(partial(line, start, end, local, WG, true, base_of(most)), local, true);
      if (local == 0u) {
        stats[g] = vec2<f32>(most, sum);
      }
    }
  } else {
    let item = g * WG + local;
    if (item < p.lines * p.parts) {
      let line = item % p.lines;
      let start = item / p.lines * p.each;
      let end = min(p.size, start + p.each);
      let most = partial(line, start, end, 0u, 1u, false, 0.0);
      stats[item] = vec2<f32>(most, partial(line, start, end, 0u, 1u, true, base_of(most)));
    }
  }
}

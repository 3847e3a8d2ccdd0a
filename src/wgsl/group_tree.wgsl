// Sum and maximum over a workgroup of WG threads, a power of two, and the sum over each run of
// `lanes` threads, a power of two and at most 16; every thread gets the result.
// The shader says what is reduced (alias Reduced: f32 or a vector of it). Uniform control flow.
var<workgroup> group_parts: array<Reduced, WG>;
fn group_add(value: Reduced, local: u32) -> Reduced {
  group_parts[local] = value;
  workgroupBarrier();
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    if (local < half) {
      group_parts[local] += group_parts[local + half];
    }
    workgroupBarrier();
  }
  let all = group_parts[0];
  workgroupBarrier(); // the next reduction may write
  return all;
}
fn group_max(value: Reduced, local: u32) -> Reduced {
  group_parts[local] = value;
  workgroupBarrier();
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    if (local < half) {
      group_parts[local] = max(group_parts[local], group_parts[local + half]);
    }
    workgroupBarrier();
  }
  let all = group_parts[0];
  workgroupBarrier();
  return all;
}
fn lanes_add(value: Reduced, local: u32, lanes: u32) -> Reduced {
  group_parts[local] = value;
  workgroupBarrier();
  for (var half = lanes / 2u; half > 0u; half /= 2u) {
    if (local % lanes < half) {
      group_parts[local] += group_parts[local + half];
    }
    workgroupBarrier();
  }
  let all = group_parts[local - local % lanes];
  workgroupBarrier();
  return all;
}

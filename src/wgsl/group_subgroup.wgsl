// group_add and group_max of group_tree with subgroups of any size from 4 on: two barriers. A subgroup's size and a
// thread's place in it come from subgroup operations, so that main needs no other arguments.
var<workgroup> group_parts: array<Reduced, WG / 4u>; // by subgroup
fn group_add(value: Reduced, local: u32) -> Reduced {
  let mine = subgroupAdd(value);
  let size = subgroupAdd(1u);
  if (subgroupExclusiveAdd(1u) == 0u) {
    group_parts[local / size] = mine;
  }
  workgroupBarrier();
  var all = group_parts[0];
  for (var i = 1u; i < WG / size; i++) {
    all += group_parts[i];
  }
  workgroupBarrier(); // the next reduction may write
  return all;
}
fn group_max(value: Reduced, local: u32) -> Reduced {
  let mine = subgroupMax(value);
  let size = subgroupAdd(1u);
  if (subgroupExclusiveAdd(1u) == 0u) {
    group_parts[local / size] = mine;
  }
  workgroupBarrier();
  var all = group_parts[0];
  for (var i = 1u; i < WG / size; i++) {
    all = max(all, group_parts[i]);
  }
  workgroupBarrier();
  return all;
}

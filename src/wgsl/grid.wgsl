// The number of a workgroup or thread in a dispatch whose x dimension was folded into y and z
// because WebGPU allows only 65,535 workgroups a dimension.
fn grid_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return group.x + groups.x * (group.y + groups.y * group.z);
}

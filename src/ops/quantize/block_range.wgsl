// The range of a block of x, or of a part of it, as (−low, high): both at least 0. `x` and `p`
// (qparams_params) are the shader's.
const RUN = 4096u; // loops are nested: one software device ends a loop after 65,535 turns
fn block_start(block: u32) -> u32 {
  var rest = block;
  var at = 0u;
  for (var d = p.outer - 1u; d > 0u; d--) {
    let size = p.outer_size[d / 4u][d % 4u];
    at += rest % size * p.outer_step[d / 4u][d % 4u];
    rest /= size;
  }
  return at + rest * p.outer_step[0].x;
}
fn block_element(e: u32) -> u32 {
  var rest = e;
  var at = 0u;
  for (var d = p.inner - 1u; d > 0u; d--) {
    let size = p.inner_size[d / 4u][d % 4u];
    at += rest % size * p.inner_step[d / 4u][d % 4u];
    rest /= size;
  }
  return at + rest * p.inner_step[0].x;
}
// Every `lanes`-th element from `begin` on.
fn block_range(block: u32, begin: u32, end: u32, lanes: u32) -> vec2<f32> {
  let first = block_start(block);
  var found = vec2<f32>(0.0);
  for (var start = begin; start < end; start += RUN) {
    for (var k = start; k < min(start + RUN, end); k += lanes) {
      let i = first + block_element(k);
      let v = elem_get(x[i / ELEMS], i % ELEMS);
      found = max(found, vec2<f32>(-v, v));
    }
  }
  return found;
}

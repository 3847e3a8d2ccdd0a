// Updates of a tensor: update j, in coordinates of `dims`, goes to element
//   sum(c * stride) + index[sum(c * step)] * axis_stride
// and takes element sum(c * source) of the source.
struct Params {
  n: u32,    // updates
  numel: u32, // of the tensor
  rank: u32,
  axis: u32,        // indices from 0 to axis - 1 are updates, others are none
  axis_stride: u32,
  value: u32,       // bits of an element, where there is no source
  unused: vec2<u32>,
  dims: array<vec4<u32>, 2>, // outermost first
  stride: array<vec4<u32>, 2>,
  step: array<vec4<u32>, 2>,
  source: array<vec4<u32>, 2>,
}
struct Update {
  at: u32, // without the index
  index: u32,
  source: u32,
}
fn update_of(j: u32) -> Update {
  var u = Update(0u, 0u, 0u);
  var rest = j;
  for (var d = p.rank; d > 0u; d--) {
    let word = (d - 1u) / 4u;
    let lane = (d - 1u) % 4u;
    let c = rest % p.dims[word][lane];
    rest /= p.dims[word][lane];
    u.at += c * p.stride[word][lane];
    u.index += c * p.step[word][lane];
    u.source += c * p.source[word][lane];
  }
  return u;
}

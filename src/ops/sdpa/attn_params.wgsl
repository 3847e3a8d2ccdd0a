// What the kernels of attention are told. Counted in quads; in elements for attn_plain.
struct Params {
  seq: u32,     // queries of a head
  heads: u32,   // of q, all batches
  heads_per_kv: u32, // heads of q that share a head of k and v
  dim: u32,     // of a head
  q_token: u32, // strides of q and out
  q_head: u32,
  k_token: u32, // strides of k and v
  k_head: u32,
  keys: u32,
  first: u32, // query i may look at keys up to first + i
  head_major: u32,
  masked: u32,
  mask: vec4<u32>, // strides: batch, head, query, key; elements
  mask_heads: u32, // heads of one batch
  mask_batches: u32, // behind them the mask repeats
  wide: u32,    // elements of a head of v and out, for attn_plain; elsewhere they are dim
  v_token: u32, // strides of v there
  v_head: u32,
  chunk: u32,      // keys of a workgroup, where keys are split
  chunks: u32,
  lanes: u32, // threads that share a key there
  scale: f32,
  never: f32, // −inf, which WGSL cannot write down
  blind: f32, // the result of a query that sees no key
}

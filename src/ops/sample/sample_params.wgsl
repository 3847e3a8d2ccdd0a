// What the passes of a draw are told.
struct Params {
  first: u32,  // where in x the part lies
  id: u32,     // of its first logit
  n: u32,      // logits in it
  block: u32,  // logits that one workgroup sees, a multiple of 4 WG
  block0: u32, // number of its first block
  blocks: u32, // of the whole row, at most WG
  step: u32,   // number of this pass
  fold: u32,   // what the pass before did: see sample_search
  starts: u32, // it was the first of its search
  ends: u32,   // it was the last of its search
  shift: u32,  // of this pass's digit in a key
  low: u32,    // lowest bits of keys that no search looks at
  top_k: u32,
  top_p: u32,  // in units of 2^-32
  share: u32,  // what is drawn, likewise
  min_p: f32,
  temperature: f32,
  scale: f32,    // of weights: their sum fits 63 bits
  tie_bits: u32, // of the largest number of equal logits
  lowest: u32,   // keys from here to highest have finite quotients
  highest: u32,
  row: u32, // of the token in out
}

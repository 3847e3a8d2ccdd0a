// Four neighbouring logits at a multiple of four: see logits_word. quad_get is a row's.
alias Logits = array<Quad>;
fn logits_get(i: u32) -> vec4<f32> { return quad_get(x[i / 4u]); }

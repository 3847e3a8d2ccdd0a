// Four neighbouring elements of 4 bytes: storage is array<Quad>, arithmetic is in Elem4. Buffers are
// a multiple of 16 bytes, so that the last quad may be read and written whole.
alias Elem4 = vec4<f32>;
alias Quad = vec4<f32>;
fn quad_get(quad: Quad) -> Elem4 { return quad; }
fn quad_put(values: Elem4) -> Quad { return values; }

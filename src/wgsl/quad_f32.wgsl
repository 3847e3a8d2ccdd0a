// Four neighbouring elements of 4 bytes: storage is array<Quad>, arithmetic is in f32.
alias Quad = vec4<f32>;
fn quad_get(quad: Quad) -> vec4<f32> { return quad; }
fn quad_put(values: vec4<f32>) -> Quad { return values; }

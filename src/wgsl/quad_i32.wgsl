// Four neighbouring integers of 4 bytes: see quad_f32.
alias Elem4 = vec4<i32>;
alias Quad = vec4<i32>;
fn quad_get(quad: Quad) -> Elem4 { return quad; }
fn quad_put(values: Elem4) -> Quad { return values; }

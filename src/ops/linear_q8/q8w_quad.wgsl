// Four bytes of a weight as numbers.
fn q8w_quad(word: u32) -> vec4<f32> { return vec4<f32>(unpack4xI8(word)); }

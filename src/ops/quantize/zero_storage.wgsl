// How zero points are stored: p.zeros, as enum zero_storage counts. 0: there are none.
const ZEROS_I8 = 1u;
const ZEROS_U8 = 2u;
const ZEROS_I32 = 3u;
const ZEROS_F16 = 4u;
const ZEROS_F32 = 5u;

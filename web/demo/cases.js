/* Case folders (docs/checking.md) in this host: what each computes must be what it was shipped with. The page's check
 * uses it, and the tests. `read(path)` gives a file's bytes as an ArrayBuffer, null where there is none. */

const TYPES = { float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, bool: Uint8Array, float16: Uint16Array };
const count = (shape) => shape.reduce((a, b) => a * b, 1);

/* Float16Array is not everywhere yet. */
function fromHalf(bits) {
  const exponent = (bits >> 10) & 31;
  const part = bits & 1023;
  const size = exponent === 31 ? (part ? NaN : Infinity) : exponent ? 2 ** (exponent - 15) * (1 + part / 1024) : 2 ** -24 * part;
  return bits & 0x8000 ? -size : size;
}
function numbers(dtype, data) {
  if (dtype === 'float16') return Array.from(new Uint16Array(data.buffer, data.byteOffset, data.length), fromHalf);
  return data;
}

async function fromFile(spec, read) {
  const Type = TYPES[spec.dtype];
  const bytes = (await read(spec.file)).slice(spec.offset ?? 0);
  return new Type(bytes, 0, count(spec.shape));
}
function ramp({ mod, off, denom, phase, shape, count: most = Infinity }) {
  return Float32Array.from({ length: count(shape) }, (_, i) => (i < most ? Math.fround(((i + phase) % mod) - off) / Math.fround(denom) : 0));
}
async function input(spec, read, before) {
  const { dtype, shape } = spec;
  if ('scalar' in spec) return Number(spec.scalar);
  if ('prev_output' in spec) return before[spec.prev_output];
  if (spec.gen === 'ramp') return { data: ramp(spec), dims: shape };
  if (spec.file) return { data: await fromFile(spec, read), dims: shape };
  const value = dtype === 'int64' ? BigInt : Number;
  const values = spec.data ? spec.data.flat(Infinity) : Array(count(shape)).fill(spec.fill);
  return { data: TYPES[dtype].from(values, value), dims: shape };
}

const kind = (x) => (Number.isFinite(x) ? 'number' : String(x));
function norm(have, want, from) {
  let wrong = 0;
  let all = 0;
  for (let i = from; i < want.length; i++) {
    wrong += (have[i] - want[i]) ** 2;
    all += want[i] ** 2;
  }
  return Math.sqrt(wrong / (all || 1));
}
/* A sentence where an output is wrong. */
function wrongIn(spec, have, want) {
  if (`${have.dims}` !== `${spec.shape}`) return `dims [${have.dims}], want [${spec.shape}]`;
  if (have.dtype !== spec.dtype) return `${have.dtype}, want ${spec.dtype}`;
  const [a, b] = [numbers(spec.dtype, have.data), numbers(spec.dtype, want)];
  if (a.length !== b.length) return `${a.length} elements, want ${b.length}`;
  const exact = !/float/.test(spec.dtype);
  const { rtol = 0, atol = 0, nrmse, tail_nrmse: tail } = spec;
  for (let i = 0; i < b.length; i++) {
    if (exact ? a[i] !== b[i] : kind(a[i]) !== kind(b[i])) return `element ${i} is ${a[i]}, want ${b[i]}`;
    if (exact || a[i] === b[i] || !Number.isFinite(b[i]) || (!('atol' in spec) && nrmse !== undefined)) continue;
    const off = Math.abs(a[i] - b[i]);
    if (off > atol && (!rtol || off / Math.max(Math.abs(b[i]), 1e-6) > rtol)) return `element ${i} is ${a[i]}, want ${b[i]}`;
  }
  if (nrmse !== undefined && norm(a, b, 0) > nrmse) return `nrmse ${norm(a, b, 0)}, at most ${nrmse}`;
  if (tail !== undefined && norm(a, b, b.length - spec.shape.at(-1)) > tail) return `the last row's nrmse is above ${tail}`;
  return null;
}

async function check(call, outputs, read) {
  for (const [i, spec] of call.outputs.entries()) {
    if (!spec.file) continue;
    const wrong = wrongIn(spec, outputs[i], await fromFile(spec, read));
    if (wrong) throw new Error(`output ${i}: ${wrong}`);
  }
}

/* null, or what is wrong with the case. */
export async function runCase(load, read) {
  const spec = JSON.parse(new TextDecoder().decode(await read('case.json')));
  const program = await read('model.pte');
  let model = await load(program);
  let before = [];
  try {
    for (const [i, call] of spec.calls.entries()) {
      if (call.reload) {
        await model.dispose();
        model = await load(program);
      }
      try {
        const inputs = [];
        for (const one of call.inputs) inputs.push(await input(one, read, before));
        const outputs = await model.run(inputs, { method: spec.method ?? 'forward' });
        if (call.expect === 'error') throw Object.assign(new Error('it must fail'), { status: 'ran' });
        await check(call, outputs, read);
        before = outputs;
      } catch (error) {
        if (call.expect !== 'error' || error.status === 'ran') throw new Error(`call ${i}: ${error.status ?? ''} ${error.message}`);
      }
    }
  } finally {
    await model.dispose();
  }
}

/* [{name, wrong}] of the cases that are wrong; a case is the address of its folder. `begin` hears of each. */
export async function runCases(cases, load, open, begin) {
  const out = [];
  for (const name of cases) {
    begin?.(name);
    const files = new Map();
    const read = async (file) => {
      if (!files.has(file)) files.set(file, await open(`${name}/${file}`));
      return files.get(file);
    };
    try {
      await runCase(load, read);
    } catch (error) {
      out.push({ name, wrong: error.message });
    }
  }
  return out;
}

/* What browsers are asked to do; the same file runs in Node. Each case returns plain data, which
 * the runner compares. */
import { Sconce, SconceError } from '/sconce/index.js';

const root = globalThis.location?.origin ?? '';
const STORIES = [`${root}/models/stories15M/stories15M-4w.pte`, { tokenizer: `${root}/models/stories15M/tokenizer.bin` }];
const TOY = `${root}/data/goldens/toy.pte`;

async function failure(work) {
  try {
    await work();
    return null;
  } catch (error) {
    return { sconce: error instanceof SconceError, status: error.status, name: error.name, message: error.message, advice: error.advice };
  }
}

/* The shipped story model: greedy ids, the same text again from the kept conversation, a stop in the middle. */
export async function stories({ maxNew = 32, worker = true, ids = [1] } = {}) {
  const progress = [];
  const started = performance.now();
  const model = await Sconce.load(STORIES[0], { ...STORIES[1], worker, onProgress: (p) => progress.push(p) });
  const loadMs = performance.now() - started;
  const greedy = [];
  let text = '';
  const generation = model.generate(ids, { maxNew, ignoreEnd: true });
  for await (const part of generation) {
    if (part.id >= 0) greedy.push(part.id);
    text += part.text;
  }
  const result = generation.result;
  const control = new AbortController();
  let heard = 0;
  const stopped = await failure(async () => {
    for await (const _ of model.generate(ids, { signal: control.signal })) if (++heard === 3) control.abort();
  });
  const saved = await model.save();
  await model.reset();
  await model.restore(saved);
  const again = (await model.save()).ids;
  const out = { greedy, text, result, stopped, heard, same: JSON.stringify(again) === JSON.stringify(saved.ids), loadMs,
    last: progress.at(-1), stats: model.stats, device: model.device };
  await model.dispose();
  out.after = await failure(() => model.tokenize('x'));
  return out;
}

/* A model without a tokenizer: typed arrays in and out, dynamic dims, several calls. */
export async function toy({ calls, worker = true }) {
  const model = await Sconce.load(TOY, { worker, cache: false });
  const outputs = [];
  for (const { tokens, pos } of calls) {
    const [y] = await model.run([BigInt64Array.from(tokens, BigInt), BigInt64Array.from([BigInt(pos)])]);
    outputs.push({ dims: y.dims, dtype: y.dtype, data: Array.from(y.data) });
  }
  const wrong = [
    await failure(() => model.run([[1, 2]])),
    await failure(() => model.run([[1, 2, 3, 4, 5, 6, 7, 8], [0]])),
    await failure(() => model.run([[1], [0]], { method: 'backward' })),
    await failure(() => model.generate('x').text()),
  ];
  await model.dispose();
  return { outputs, wrong };
}

/* Files as a user has them, and files that are none. */
export async function files({ worker = true } = {}) {
  const bytes = await (await fetch(TOY)).arrayBuffer();
  const out = {};
  for (const [name, from] of Object.entries({ buffer: bytes, blob: new Blob([bytes]), file: new File([bytes], 'toy.pte'), view: new Uint8Array(bytes) })) {
    const model = await Sconce.load(from, { worker });
    out[name] = Object.keys(model.methods).length;
    await model.dispose();
  }
  out.garbage = await failure(() => Sconce.load(new Uint8Array(5000).fill(7), { worker }));
  out.cut = await failure(() => Sconce.load(bytes.slice(0, bytes.byteLength - 700), { worker }));
  out.empty = await failure(() => Sconce.load(new ArrayBuffer(0), { worker }));
  out.missing = await failure(() => Sconce.load(`${root}/data/nothing.pte`, { worker }));
  out.tokenizer = await failure(() => Sconce.load(bytes, { worker, tokenizer: new Uint8Array([1, 2, 3]) }));
  out.aborted = await failure(() => Sconce.load(TOY, { worker, signal: AbortSignal.abort() }));
  return out;
}

/* Blocks of a URL are kept: a load after the first asks for one byte only. */
export async function cache() {
  await (await Sconce.load(STORIES[0], STORIES[1])).dispose();
  return Sconce.kept();
}

export async function check() {
  return Sconce.check();
}

/* What browsers are asked to do. Each case returns plain data, which
 * the runner compares. */
import { Sconce, SconceError } from '/sconce/index.js';
import { at } from './at.js';
import { runCases } from '/demo/cases.js';
import { runGoldens, tell } from './language.js';

const root = globalThis.location?.origin ?? '';
const STORIES = [`${root}/models/stories15M/stories15M-4w.pte`, { tokenizer: `${root}/models/stories15M/tokenizer.bin` }];
const TOY = `${root}/data/goldens/toy.pte`;

const loading = (p) => at(`loading: ${JSON.stringify(p)}`);

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
  const model = await Sconce.load(STORIES[0], { ...STORIES[1], worker, onProgress: (p) => progress.push(p) && loading(p) });
  const loadMs = performance.now() - started;
  const greedy = [];
  let text = '';
  const generation = model.generate(ids, { maxNew, ignoreEnd: true });
  for await (const part of generation) {
    at(`the story's part ${greedy.length}`);
    if (part.id >= 0) greedy.push(part.id);
    text += part.text;
  }
  const result = generation.result;
  const control = new AbortController();
  let heard = 0;
  const stopped = await failure(async () => {
    for await (const _ of model.generate(ids, { signal: control.signal })) if (at(`a story to stop, part ${heard}`) && ++heard === 3) control.abort();
  });
  at('saving and restoring');
  const saved = await model.save();
  await model.reset();
  await model.restore(saved);
  const again = (await model.save()).ids;
  const out = { greedy, text, result, stopped, heard, same: JSON.stringify(again) === JSON.stringify(saved.ids), loadMs,
    last: progress.at(-1), stats: model.stats, device: model.device };
  at('disposing of the story model');
  await model.dispose();
  out.after = await failure(() => model.tokenize('x'));
  return out;
}

/* How long a greedy story takes; the model stays for the next one. */
let kept = null;
export async function speed(maxNew) {
  kept ??= await Sconce.load(STORIES[0], STORIES[1]);
  await kept.reset();
  const generation = kept.generate([1], { maxNew, ignoreEnd: true });
  await generation.text();
  return generation.result;
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
  const control = new AbortController();
  const aborted = failure(() => model.run([[1], [0]], { signal: control.signal }));
  control.abort(new RangeError('of the caller'));
  wrong.push(await aborted);
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
  const handle = await (await navigator.storage.getDirectory()).getFileHandle('toy.pte', { create: true });
  const stream = await handle.createWritable();
  await stream.write(bytes);
  await stream.close();
  const picked = await Sconce.load(handle, { worker });
  out.handle = Object.keys(picked.methods).length;
  await picked.dispose();
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

/* Case folders: those that are wrong. On this thread, since a worker each takes longer than the cases. */
export async function fixtures(cases) {
  const open = async (address) => (await fetch(address)).arrayBuffer();
  return runCases(cases, (program) => Sconce.load(program, { worker: false }), open, at);
}

const place = (name) => `${root}${name}`;
export async function goldens({ program, cases, tolerance }) {
  const model = await Sconce.load(place(program), { cache: false, onProgress: loading });
  const wrong = await runGoldens(model, cases, tolerance);
  await model.dispose();
  return wrong;
}
export async function told({ program, tokenizer, prompts }) {
  const model = await Sconce.load(place(program), { cache: false, tokenizer: place(tokenizer), onProgress: loading });
  const texts = await tell(model, prompts);
  await model.dispose();
  return texts;
}

/* The package from another origin: what it gives, and the workers that were started for it. */
export async function elsewhere({ origin, noWorkers = false }) {
  const { Worker } = window;
  const started = [];
  window.Worker = class extends Worker {
    constructor(url, options) {
      if (noWorkers) throw new DOMException('no workers', 'SecurityError');
      super(url, options);
      started.push(new URL(url).protocol);
    }
  };
  try {
    const other = await import(`${origin}/sconce/index.js`);
    const model = await other.Sconce.load(TOY, { cache: false });
    const [y] = await model.run([[1], [0]]);
    await model.dispose();
    return { dims: y.dims, started };
  } finally {
    window.Worker = Worker;
  }
}

/* A model from another origin's server: what it gives, and what of it is kept. */
export async function foreign({ origin }) {
  const model = await Sconce.load(`${origin}/data/goldens/toy.pte`);
  const [y] = await model.run([[1], [0]]);
  await model.dispose();
  return { dims: y.dims, kept: (await Sconce.kept()).filter(({ url }) => url.startsWith(origin)).length };
}

/* Things that a worker cannot be sent, and numbers that are none of a model's: the errors. */
export async function misuse() {
  const model = await Sconce.load(TOY, { cache: false });
  const out = [
    await failure(() => Sconce.load(TOY, { limits: () => 1 })),
    await failure(() => Sconce.load('http://[', {})),
    await failure(() => model.run([() => 1, 2])),
    await failure(() => model.run([[1.5], [0]])),
    await failure(() => model.generate([1], { seed: 1.5 }).text()),
  ];
  await model.dispose();
  return out;
}

export async function check() {
  return Sconce.check();
}

/* A big model (web/test/big.c) in parts: what it gives for x = 1, and what was noticed. `stop` aborts at so many bytes. */
export async function big({ folder, stop = Infinity, cache = true, worker = true }) {
  const control = new AbortController();
  const notices = [];
  let loaded = 0;
  const onProgress = (p) => {
    loaded = p.loaded;
    if (loaded >= stop) control.abort();
  };
  const out = { notices };
  out.failed = await failure(async () => {
    const data = [0, 1].map((i) => `${root}/${folder}/big.${i}.ptd`);
    const model = await Sconce.load(`${root}/${folder}/big.pte`, { data, signal: control.signal, onProgress, onNotice: (text) => notices.push(text), cache, worker });
    const [input] = model.methods.forward.inputs;
    const [y] = await model.run([new Float32Array(input.dims[0]).fill(1)]);
    out.values = [y.data[0], y.data.at(-1)];
    out.stats = model.stats;
    await model.dispose();
  });
  return { ...out, loaded, kept: await Sconce.kept() };
}

/* Turns one byte of a block that is kept. */
export async function damage(part) {
  const place = await (await navigator.storage.getDirectory()).getDirectoryHandle('sconce');
  for await (const child of place.values()) {
    const about = JSON.parse(await (await (await child.getFileHandle('meta.json')).getFile()).text());
    if (!about.url.endsWith(part)) continue;
    const handle = await child.getFileHandle('1');
    const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
    bytes[12345] ^= 1;
    const stream = await handle.createWritable();
    await stream.write(bytes);
    await stream.close();
    return true;
  }
  return false;
}

export const forget = () => Sconce.forget();

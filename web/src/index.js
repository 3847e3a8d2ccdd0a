/* sconce: ExecuTorch models on WebGPU.
 *
 *   const model = await Sconce.load('/model.pte', { tokenizer: '/tokenizer.json' });
 *   for await (const { text } of model.generate('Once upon a time')) show(text);
 *
 * A model has a worker of its own, where there are workers; `worker: false` keeps it on this thread. */
import { Engine, whyNoGpu } from './engine.js';
import { SconceError, aborted, badArgument, unpack } from './error.js';
import { forget, kept, whole } from './sources.js';

export { SconceError };

/* ---- two ways to an engine ---- */

/* Calls go through messages. */
class Remote {
  constructor(worker) {
    this.worker = worker;
    this.calls = new Map();
    this.next = 1;
    worker.onmessage = ({ data }) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault?.();
      const error = new SconceError('unsupported', `the worker failed: ${event.message ?? 'it could not be loaded'}`);
      this.end(Object.assign(error, { unheard: !this.heard }));
    };
  }
  receive({ call, event, value, error, stats }) {
    this.heard = true;
    if (event === 'lost') return this.onLost?.(value);
    const waiting = this.calls.get(call);
    if (!waiting) return;
    if (event) return waiting.events[event]?.(value);
    this.calls.delete(call);
    if (stats) this.latest = stats;
    if (error) waiting.reject(unpack(error, waiting.signal));
    else waiting.resolve(value);
  }
  call(name, args, { signal, ...events } = {}) {
    if (this.closed) return Promise.reject(this.closed);
    if (signal?.aborted) return Promise.reject(aborted(signal));
    const call = this.next++;
    const abort = () => this.worker.postMessage({ call, name: 'abort' });
    signal?.addEventListener('abort', abort);
    const done = new Promise((resolve, reject) => this.calls.set(call, { resolve, reject, events, signal }));
    try {
      this.worker.postMessage({ call, name, args });
    } catch (error) {
      this.calls.delete(call);
      signal?.removeEventListener('abort', abort);
      return Promise.reject(badArgument(`the worker cannot be sent that: ${error.message}`));
    }
    return done.finally(() => signal?.removeEventListener('abort', abort));
  }
  get stats() {
    return this.latest ?? {};
  }
  end(error) {
    this.closed = error;
    for (const { reject } of this.calls.values()) reject(error);
    this.calls.clear();
    this.worker.terminate();
  }
  async dispose() {
    if (this.closed) return;
    await Promise.race([this.call('dispose'), new Promise((resolve) => setTimeout(resolve, 1000))]).catch(() => {});
    this.end(badArgument('the model was disposed of'));
  }
}

/* Calls are calls. */
class Local {
  async call(name, args, { signal, text, prompt, progress, notice, log } = {}) {
    if (name === 'load') {
      this.engine = await Engine.create({ ...args.device, signal, onLog: (level, line) => log?.({ level, text: line }) });
      this.engine.glue.onLost = (message) => this.onLost?.(message);
      return this.engine.load(args.program, { ...args.options, signal, onProgress: progress, onNotice: notice });
    }
    if (name === 'generate')
      return this.engine.generate(args.prompt, { ...args.options, signal, onPrompt: (done, all) => prompt?.({ done, all }) }, text);
    if (name === 'run') return this.engine.run(args.inputs, { ...args.options, signal });
    if (name === 'openMethod') return this.engine.openMethod(args.name, { signal, onProgress: progress });
    if (name === 'tokenize') return this.engine.tokenize(args.text, args.options);
    if (name === 'detokenize') return this.engine.detokenize(args.ids);
    if (name === 'restore') return this.engine.restore(args.saved, { signal });
    return this.engine[name]();
  }
  get stats() {
    return this.engine && !this.engine.disposed ? this.engine.stats() : {};
  }
  async dispose() {
    this.engine?.dispose();
  }
}

/* A page may start workers of its own origin alone. Where the package comes from another, a worker of the page's
 * imports ours, which lies beside the module; bundlers know that file already, and are given no other one. */
async function importWorker() {
  const beside = new URL('./sconce.wasm', import.meta.url);
  const code = `import(${JSON.stringify(new URL('worker.js', beside).href)}).then(() => postMessage(true), () => postMessage(false));`;
  const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  try {
    const worker = new Worker(url, { type: 'module', name: 'sconce' });
    const came = await new Promise((resolve) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = () => resolve(false);
    });
    if (came) return worker;
    worker.terminate();
  } finally {
    URL.revokeObjectURL(url);
  }
  throw new SconceError('unsupported', 'no worker can be started here');
}

/* Ways to run a model, best first: the next one is for where the one before cannot be had at all. */
function ways({ worker = true, gpu }) {
  if (!worker || gpu || typeof Worker === 'undefined') return [() => new Local()];
  if (typeof worker === 'object') return [() => new Remote(worker)];
  return [
    () => new Remote(new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'sconce' })),
    async () => new Remote(await importWorker()),
    () => new Local(),
  ];
}

async function start([way, ...others], args, events) {
  let link;
  try {
    link = await way();
    return new Model(link, await link.call('load', args, events));
  } catch (error) {
    await link?.dispose();
    if (others.length && (!link || error.unheard)) return start(others, args, events);
    throw error;
  }
}

/* ---- a model ---- */

/* Text as it comes, and what the generation was when it has ended. */
class Generation {
  constructor(start, signal) {
    this.parts = [];
    this.control = new AbortController();
    this.start = start;
    this.signal = signal;
    this.onAbort = () => this.control.abort(aborted(signal));
    if (signal?.aborted) this.onAbort();
    signal?.addEventListener('abort', this.onAbort);
  }
  begin() {
    this.done ??= this.start(this.control.signal, (part) => {
      this.parts.push(part);
      this.wake?.();
    }).finally(() => {
      this.signal?.removeEventListener('abort', this.onAbort);
      this.ended = true;
      this.wake?.();
    });
    this.done.catch(() => {});
    return this.done;
  }
  /* Everything at once. */
  async text() {
    let all = '';
    for await (const { text } of this) all += text;
    return all;
  }
  async *[Symbol.asyncIterator]() {
    this.begin();
    try {
      for (;;) {
        while (this.parts.length) yield this.parts.shift();
        if (this.ended) break;
        await new Promise((resolve) => (this.wake = resolve));
      }
      this.result = await this.done;
    } finally {
      this.control.abort(); /* who stops listening wants no more of it */
      if (!this.result) await this.done.catch(() => {});
    }
  }
}

export class Model {
  #link;
  constructor(link, about) {
    this.#link = link;
    this.about = about;
    this.lost = new Promise((resolve) => (link.onLost = (message) => resolve({ message })));
  }
  /* Names and shapes of the methods that are open; null: not opened yet. */
  get methods() {
    return this.about.methods;
  }
  get device() {
    return this.about.device;
  }
  get stats() {
    return this.#link.stats;
  }

  generate(prompt, { signal, onPrompt, ...options } = {}) {
    return new Generation((own, text) => this.#link.call('generate', { prompt, options }, { signal: own, text, prompt: onPrompt }), signal);
  }
  chat(messages, options) {
    return this.generate({ messages }, options);
  }
  run(inputs, { signal, ...options } = {}) {
    return this.#link.call('run', { inputs, options }, { signal });
  }
  async open(name, { signal, onProgress } = {}) {
    this.about = await this.#link.call('openMethod', { name }, { signal, progress: onProgress });
    return this.about.methods[name];
  }
  tokenize(text, options) {
    return this.#link.call('tokenize', { text, options });
  }
  detokenize(ids) {
    return this.#link.call('detokenize', { ids: Array.from(ids) });
  }
  save() {
    return this.#link.call('save');
  }
  restore(saved, { signal } = {}) {
    return this.#link.call('restore', { saved }, { signal });
  }
  reset() {
    return this.#link.call('reset');
  }
  dispose() {
    return this.#link.dispose();
  }
  [Symbol.asyncDispose]() {
    return this.dispose();
  }
}

export const Sconce = {
  async load(program, options = {}) {
    const { signal, onProgress, onNotice, onLog, worker, gpu, wasm, adapter, disable, limits, ...rest } = options;
    const files = { ...rest, data: (rest.data ?? []).map(whole) };
    for (const name of ['tokenizer', 'tokenizerConfig']) if (files[name]) files[name] = whole(files[name]);
    const device = { adapter, disable, limits, ...(gpu ? { gpu } : {}), ...(wasm ? { wasm: whole(wasm) } : {}) };
    return start(ways({ worker, gpu }), { program: whole(program), options: files, device }, { signal, progress: onProgress, notice: onNotice, log: onLog });
  },

  /* Can this page run models? {ok: true, …}, or why not and what to do. */
  async check({ gpu = globalThis.navigator?.gpu } = {}) {
    const why = whyNoGpu(gpu);
    if (why) return { ok: false, reason: why.message, advice: why.advice };
    const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
    if (!adapter)
      return { ok: false, reason: 'the browser has WebGPU, but no GPU that it trusts', advice: 'Update the graphics driver; chrome://gpu or about:support says why a GPU is refused.' };
    const { vendor = '', architecture = '', device = '', description = '' } = adapter.info ?? {};
    const limits = {};
    for (const name of ['maxBufferSize', 'maxStorageBufferBindingSize', 'maxStorageBuffersPerShaderStage', 'maxComputeWorkgroupStorageSize', 'maxComputeInvocationsPerWorkgroup'])
      limits[name] = adapter.limits[name];
    return { ok: true, adapter: { vendor, architecture, device, description }, features: [...(adapter.features ?? [])].sort(), limits };
  },

  /* Files that were kept: [{url, size, kept}], and how to be rid of them. */
  kept,
  forget,
};

export default Sconce;

/* One model in one instance of sconce.wasm, on whatever thread this runs: worker.js and index.js
 * both use it. Everything that takes time is a loop of polls with a pause in between; calls of one
 * engine follow each other. */
import { Glue } from './glue.js';
import { disk, get, openSource } from './sources.js';
import { SconceError, aborted, badArgument } from './error.js';

const PIECE = 4 << 20; /* bytes handed to the module at once */
const STOPS = ['', 'end', 'text', 'count', 'context', 'caller'];
const DTYPES = {
  0: ['uint8', Uint8Array], 1: ['int8', Int8Array], 2: ['int16', Int16Array], 3: ['int32', Int32Array],
  4: ['int64', BigInt64Array], 5: ['float16', globalThis.Float16Array ?? Uint16Array], 6: ['float32', Float32Array],
  7: ['float64', Float64Array], 11: ['bool', Uint8Array],
};
const NUMBER_OF = new Map(Object.entries(DTYPES).filter(([n]) => n !== '11').map(([n, [, type]]) => [type, Number(n)]));

async function fetchModule(from) {
  if (from instanceof WebAssembly.Module) return from;
  if (from instanceof ArrayBuffer || ArrayBuffer.isView(from)) return WebAssembly.compile(from);
  const url = new URL(from ?? new URL('./sconce.wasm', import.meta.url), globalThis.location?.href);
  if (url.protocol === 'file:') return WebAssembly.compile(await (await disk()).readFile(url));
  return WebAssembly.compile(await (await get(url)).arrayBuffer());
}

/* sconce.wasm holds the real module packed, and unpacks it (see unpack.c). */
async function unpacked(from) {
  const outer = await WebAssembly.instantiate(await fetchModule(from));
  const { unpack, unpacked_size: size, memory } = outer.exports;
  return WebAssembly.compile(new Uint8Array(memory.buffer, unpack(), size()));
}
/* Once for all models of this thread; a failure is tried again. */
let common = null;
function compile(from) {
  if (from) return unpacked(from);
  common ??= unpacked().catch((error) => {
    common = null;
    throw error;
  });
  return common;
}

/* Why there is no WebGPU here, and what to do. */
export function whyNoGpu(gpu) {
  if (gpu) return null;
  if (globalThis.isSecureContext === false)
    return new SconceError('no device', 'WebGPU works on secure pages only', { advice: 'Serve the page over https, or from localhost.' });
  if (!globalThis.document && globalThis.process?.versions?.node)
    return new SconceError('no device', 'there is no WebGPU in Node', { advice: "Install npm's webgpu, and give what its create([]) makes as `gpu`." });
  return new SconceError('no device', 'this browser has no WebGPU', {
    advice: 'Use Chrome or Edge 113 or newer, Safari 26, or Firefox 141 or newer; on Linux it may have to be switched on (chrome://flags, about:config).',
  });
}

function brokenBy(error) {
  if (error instanceof SconceError) return error;
  const text = error?.message ?? String(error);
  if (error instanceof TypeError || error instanceof DOMException) return new SconceError('GPU error', text, { cause: error });
  return new SconceError('internal error', `the module failed: ${text}`, { cause: error });
}

/* ---- what callers give ---- */

/* Inputs by their numbers, x0, x1, …, as in Python; x where there is one. */
function inOrder(inputs, method, n) {
  if (Array.isArray(inputs)) {
    if (inputs.length !== n) throw badArgument(`${inputs.length} inputs, the method '${method}' takes ${n}`);
    return inputs;
  }
  if (inputs === null || typeof inputs !== 'object' || ArrayBuffer.isView(inputs)) throw badArgument('inputs are a list, or {x0, x1, …}');
  const names = Array.from({ length: n }, (_, i) => `x${i}`);
  const given = n === 1 && 'x' in inputs ? { x0: inputs.x } : inputs;
  const wrong = Object.keys(given).find((name) => !names.includes(name)) ?? names.find((name) => !(name in given));
  if (wrong === undefined) return names.map((name) => given[name]);
  throw badArgument(`the method '${method}' has the inputs ${names.join(', ') || 'of none'}: ${wrong} ${wrong in given ? 'is none of them' : 'was not given'}`);
}

/* Numbers, as the elements of a dtype that has every one of them. */
function fromList(list, { dtype, number }, i) {
  const Type = DTYPES[number][1];
  if (dtype === 'float16' && Type === Uint16Array) throw badArgument(`input ${i}: there is no Float16Array here, give a Uint16Array of the bits`);
  const out = new Type(list.length);
  const isWhole = /int/.test(dtype);
  list.forEach((v, k) => {
    const known = ['number', 'bigint', 'boolean'].includes(typeof v) && !(isWhole && typeof v === 'number' && !Number.isInteger(v));
    if (known) out[k] = dtype === 'int64' ? BigInt(v) : Number(v);
    if (!known || (isWhole && out[k] != v)) throw badArgument(`input ${i}: element ${k} is ${String(v)}, which is no ${dtype}`);
  });
  return out;
}

function wholeIds(ids) {
  const list = Array.from(ids);
  const wrong = list.find((id) => !Number.isInteger(id) || id !== (id | 0));
  if (wrong !== undefined) throw badArgument(`${String(wrong)} is no id`);
  return Int32Array.from(list);
}
function wholeNumbers(options) {
  for (const [name, value] of Object.entries(options))
    if (!(typeof value === 'bigint' || Number.isSafeInteger(value)) || value < 0) throw badArgument(`${name} is ${String(value)}, it must be a whole number from 0 on`);
}

export class Engine {
  static async create(options = {}) {
    const engine = new Engine();
    const gpu = options.gpu ?? globalThis.navigator?.gpu;
    const why = whyNoGpu(gpu);
    if (why) throw why;
    engine.glue = new Glue(gpu);
    engine.onLog = options.onLog;
    const module = await compile(options.wasm);
    engine.check(options.signal);
    const { exports } = await WebAssembly.instantiate(module, engine.imports());
    engine.glue.attach(exports);
    engine.c = engine.guarded(exports);
    engine.c._initialize();
    try {
      await engine.openDevice(options);
    } catch (error) {
      engine.dispose();
      throw error;
    }
    return engine;
  }

  imports() {
    const glue = this.glue;
    const nothing = () => 8; /* bad file descriptor */
    return {
      env: glue.imports(),
      sconce: {
        clock_ms: () => performance.now(),
        local_seconds: () => Date.now() / 1000 - new Date().getTimezoneOffset() * 60,
        /* What callers do with it must not end the module. */
        log: (level, text) => {
          const line = glue.zero(text);
          queueMicrotask(() => this.onLog?.(level, line));
        },
        text: (_, at, size, id) => this.listener?.text(glue.decoder.decode(glue.bytes.slice(at, at + size)), id) ?? 1,
        prompt: (_, done, all) => this.listener?.prompt(done, all) ?? 1,
      },
      wasi_snapshot_preview1: {
        environ_get: () => 0,
        environ_sizes_get: (n, size) => {
          glue.set32(n, 0);
          glue.set32(size, 0);
          return 0;
        },
        fd_close: nothing, fd_seek: nothing, fd_write: nothing,
        proc_exit: (code) => {
          throw new SconceError('unsupported', `the module ended with ${code}`);
        },
      },
    };
  }

  /* ---- calls ---- */

  /* What ends a call from within, a trap or an exception of WebGPU's own calls, leaves the module in the middle of
   * something: it is not called again. */
  guarded(exports) {
    const guard = (f) => (...args) => {
      if (this.broken) throw this.broken;
      try {
        return f(...args);
      } catch (error) {
        this.broken = brokenBy(error);
        throw this.broken;
      }
    };
    return Object.fromEntries(Object.entries(exports).map(([name, it]) => [name, typeof it === 'function' ? guard(it) : it]));
  }
  get usable() {
    return !this.disposed && !this.broken;
  }
  fail() {
    const at = this.c.web_error();
    const status = this.glue.zero(this.c.web_status_name(this.glue.get32(at)));
    return new SconceError(status, this.glue.zero(at + 4));
  }
  /* Handles and polls: 0 and -1 are failures. */
  good(value, bad = 0) {
    if (value === bad) throw this.fail();
    return value;
  }
  out(i) {
    return this.glue.view.getFloat64(this.c.web_out() + 8 * i, true);
  }
  /* Memory for the length of a call. */
  with(values, call) {
    const places = [];
    try {
      const pointers = values.map((value) => {
        if (value === null || value === undefined) return 0;
        const bytes = typeof value === 'string' ? this.glue.encoder.encode(`${value}\0`) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
        const at = this.glue.allocate(bytes.length);
        places.push(at);
        this.glue.bytes.set(bytes, at);
        return at;
      });
      return call(...pointers);
    } finally {
      if (this.usable) for (const at of places) this.c.free(at);
    }
  }
  /* One after another; an error is its caller's alone. */
  exclusive(work) {
    const run = (this.tail ?? Promise.resolve()).then(() => {
      if (this.disposed) throw badArgument('the model was disposed of');
      return work();
    });
    this.tail = run.catch(() => {});
    return run;
  }
  check(signal) {
    if (signal?.aborted) throw aborted(signal);
    if (this.disposed) throw badArgument('the model was disposed of');
  }

  async openDevice({ adapter, disable, limits, signal }) {
    this.device = this.good(this.with([adapter, disable, limits], (...at) => this.c.web_device_begin(...at)));
    try {
      while (this.good(this.c.web_device_poll(this.device), -1) === 0) {
        await this.glue.event();
        this.check(signal);
      }
    } catch (error) {
      if (error.status === 'no device')
        error.advice ||= 'The browser found no GPU that it trusts. Update the graphics driver, or see chrome://gpu or about:support for the reason.';
      throw error;
    }
    this.info = JSON.parse(this.glue.zero(this.c.web_device_describe(this.device)));
  }

  /* ---- loading ---- */

  async load(program, { data = [], tokenizer, tokenizerConfig, method = 'forward', cache, signal, onProgress, onNotice } = {}) {
    const options = { signal, cache, onNotice };
    this.speaks = method;
    this.files = await Promise.all([program, ...data].map((file) => openSource(file, options)));
    this.check(signal);
    if (this.files.some((file) => file.size === 0)) throw new SconceError('bad file', 'the file is empty');
    const sizes = new Float64Array(this.files.map((file) => file.size));
    this.model = this.good(this.with([sizes], (at) => this.c.web_model_begin(this.device, at, sizes.length)));
    await this.finish(() => this.c.web_model_poll(this.model), signal);
    if (tokenizer) await this.openTokenizer(tokenizer, tokenizerConfig, options);
    this.methods = {};
    this.names = [];
    for (let i = 0; i < this.c.web_model_methods(this.model); i++) this.names.push(this.glue.zero(this.c.web_model_method(this.model, i)));
    if (this.names.includes(method)) await this.method(method, signal, onProgress);
    return this.describe();
  }

  async openTokenizer(from, config, options) {
    const whole = async (file) => {
      const source = await openSource(file, options);
      const bytes = await source.read(0, source.size, options.signal);
      await source.close?.();
      return bytes;
    };
    const bytes = await whole(from);
    const extra = config ? await whole(config) : null;
    this.check(options.signal);
    this.tokenizer = this.good(this.with([bytes, extra], (at, also) =>
      this.c.web_tokenizer_open(at, bytes.length, also, extra?.length ?? 0)));
    const kind = this.glue.zero(this.c.web_tokenizer_describe(this.tokenizer));
    this.vocabulary = { kind, size: this.out(0), bos: this.out(1), eos: this.out(2), addBos: !!this.out(3), chatTemplate: !!this.out(4) };
  }

  /* Polls to the end, hands in what is wanted, and lets others work. */
  async finish(poll, signal, onProgress) {
    let before = '';
    while (this.good(poll(), -1) === 0) {
      const [loaded, total, kernels, allKernels, file, offset, size] = [0, 1, 2, 3, 4, 5, 6].map((i) => this.out(i));
      const now = `${loaded} ${kernels}`;
      if (now !== before) onProgress?.({ loaded, total, kernels, allKernels });
      if (size) await this.give(file, offset, Math.min(size, PIECE), signal);
      else if (now !== before) await this.glue.breathe();
      else await this.glue.event();
      before = now;
      this.check(signal);
    }
    const [total, allKernels] = [this.out(1), this.out(3)]; /* zeros are not read: done is all of it */
    onProgress?.({ loaded: total, total, kernels: allKernels, allKernels });
  }
  async give(file, offset, size, signal) {
    const bytes = await this.files[file].read(offset, size, signal);
    if (bytes.length !== size)
      throw new SconceError('I/O error', `the file ended at ${offset + bytes.length}, it had ${this.files[file].size} bytes`);
    this.check();
    this.piece ??= this.glue.allocate(PIECE);
    this.glue.bytes.set(bytes, this.piece);
    this.good(this.c.web_model_give(this.model, file, offset, this.piece, size), -1);
  }

  async method(name, signal, onProgress) {
    if (this.methods[name]) return this.methods[name];
    const handle = this.good(this.with([name], (at) => this.c.web_method_begin(this.model, at)));
    try {
      await this.finish(() => this.c.web_method_poll(handle), signal, onProgress);
    } catch (error) {
      if (this.usable) this.c.web_method_close(handle);
      throw error;
    }
    const language = !!this.c.web_method_describe(handle);
    const [inputs, outputs] = [this.out(0), this.out(1)];
    const tensors = (n, output) => Array.from({ length: n }, (_, i) => {
      this.c.web_method_tensor(handle, output, i);
      return this.shape();
    });
    this.methods[name] = { handle, language, inputs: tensors(inputs, 0), outputs: tensors(outputs, 1) };
    return this.methods[name];
  }
  shape() {
    const number = this.out(0);
    const dims = Array.from({ length: this.out(1) }, (_, i) => this.out(4 + i));
    return { dtype: DTYPES[number]?.[0] ?? 'unknown', dims, dynamic: !!this.out(2), number, bytes: this.out(3) };
  }

  describe() {
    const clean = ({ dtype, dims, dynamic }) => ({ dtype, dims, dynamic });
    const methods = {};
    for (const name of this.names) {
      const m = this.methods[name];
      methods[name] = m ? { inputs: m.inputs.map(clean), outputs: m.outputs.map(({ dtype, dims }) => ({ dtype, dims })), language: m.language } : null;
    }
    return { methods, device: this.info, tokenizer: this.vocabulary ?? null, size: this.files.reduce((sum, f) => sum + f.size, 0) };
  }
  openMethod(name, { signal, onProgress } = {}) {
    return this.exclusive(async () => {
      this.needMethod(name);
      await this.method(name, signal, onProgress);
      return this.describe();
    });
  }

  needMethod(name) {
    if (!this.names.includes(name)) throw badArgument(`no method '${name}', there are ${this.names.join(', ')}`);
  }

  /* ---- running ---- */

  run(inputs, { method = 'forward', signal } = {}) {
    return this.exclusive(async () => {
      this.check(signal);
      this.needMethod(method);
      const m = await this.method(method, signal);
      this.check(signal);
      m.state ??= this.good(this.c.web_state_open(m.handle));
      inOrder(inputs, method, m.inputs.length).forEach((value, i) => this.setInput(m, i, value));
      this.good(this.c.web_state_begin(m.state), -1);
      try {
        while (this.good(this.c.web_state_poll(m.state), -1) === 0) {
          await this.glue.event();
          this.check(signal);
        }
      } catch (error) {
        if (this.usable) this.c.web_state_cancel(m.state);
        throw error;
      }
      return m.outputs.map((_, i) => this.output(m, i));
    });
  }
  setInput(m, i, value) {
    const want = m.inputs[i];
    let data = value?.data ?? value;
    if (typeof data === 'number' || typeof data === 'bigint' || typeof data === 'boolean') data = [data];
    if (Array.isArray(data)) data = fromList(data.flat(Infinity), want, i);
    if (!ArrayBuffer.isView(data)) throw badArgument(`input ${i} is no typed array, no list and no number`);
    let number = NUMBER_OF.get(data.constructor) ?? -1;
    if ((want.dtype === 'bool' && number === 0) || (want.dtype === 'float16' && data instanceof Uint16Array)) number = want.number;
    if (number < 0) throw badArgument(`input ${i} is a ${data.constructor.name}, the method wants ${want.dtype}`);
    const dims = value?.dims ?? this.guessDims(want, data.length);
    this.good(this.with([data, new Uint32Array(dims)], (at, list) =>
      this.c.web_state_set_input(m.state, i, number, dims.length, list, at, data.byteLength)), -1);
  }
  /* Where only one shape is possible nobody has to say it. */
  guessDims(want, length) {
    const all = want.dims.reduce((a, b) => a * b, 1);
    if (length === all || !want.dynamic) return want.dims;
    if (want.dims.length === 1) return [length];
    const ones = want.dims.filter((d) => d === 1).length;
    if (ones === want.dims.length - 1) return want.dims.map((d) => (d === 1 ? 1 : length));
    throw badArgument(`${length} elements for ${want.dtype} [${want.dims}]: say which dims, {data, dims}`);
  }
  output(m, i) {
    const at = this.good(this.c.web_state_output(m.state, i)) >>> 0;
    const { dtype, dims, number, bytes } = this.shape();
    const copy = this.glue.bytes.slice(at, at + bytes);
    return { dtype, dims, data: new DTYPES[number][1](copy.buffer) };
  }

  /* ---- text ---- */

  needTokenizer() {
    if (!this.tokenizer) throw badArgument('the model was loaded without a tokenizer');
  }
  ids(at) {
    const n = this.out(0);
    return Array.from(new Int32Array(this.glue.bytes.slice(at, at + 4 * n).buffer));
  }
  encode(text, { bos = false, special = false } = {}) {
    this.needTokenizer();
    const size = this.glue.encoder.encode(text).length;
    const flags = (bos ? 1 : 0) | (special ? 2 : 0);
    return this.ids(this.good(this.with([text], (at) => this.c.web_tokenizer_encode(this.tokenizer, at, size, flags))));
  }
  decode(ids) {
    this.needTokenizer();
    const at = this.good(this.with([wholeIds(ids)], (list) => this.c.web_tokenizer_decode(this.tokenizer, list, ids.length, 0)));
    return this.glue.decoder.decode(this.glue.bytes.slice(at, at + this.out(0)));
  }
  chatIds(messages, { tools, think, template } = {}) {
    this.needTokenizer();
    const conversation = JSON.stringify({ messages, ...(tools ? { tools } : {}) });
    const mode = think === undefined ? 0 : think ? 1 : 2;
    return this.ids(this.good(this.with([conversation, template], (at, jinja) => this.c.web_chat_encode(this.tokenizer, at, jinja, mode))));
  }
  tokenize(text, options) {
    return this.exclusive(async () => this.encode(text, options));
  }
  detokenize(ids) {
    return this.exclusive(async () => this.decode(ids));
  }

  openSession() {
    if (!this.session)
      this.session = this.good(this.with([this.speaks], (at) => this.c.web_session_open(this.model, at, this.tokenizer ?? 0, 0)));
    return this.session;
  }

  /* prompt: text, ids, or {messages}. `emit` gets {text, id}; the result says how it ended. */
  generate(prompt, options, emit) {
    return this.exclusive(async () => {
      this.check(options.signal);
      const session = this.openSession();
      const ids = this.promptIds(prompt, options);
      this.setSampler(session, options);
      return this.generateIds(session, ids, options, emit);
    });
  }
  promptIds(prompt, options) {
    if (prompt?.messages) return this.chatIds(prompt.messages, options);
    if (typeof prompt !== 'string') return wholeIds(prompt);
    return this.encode(prompt, { bos: options.bos ?? this.vocabulary?.addBos ?? false });
  }
  setSampler(session, { temperature = 0, topK = 0, topP = 0, minP = 0, repetitionPenalty = 0, seed = 0 }) {
    wholeNumbers({ topK, seed });
    const key = [temperature, topK, topP, minP, repetitionPenalty, seed].join();
    if (key === this.sampler) return;
    this.good(this.c.web_session_set_sampler(session, temperature, topK, topP, minP, repetitionPenalty, BigInt(seed)), -1);
    this.sampler = key;
  }

  async generateIds(session, ids, { maxNew = 0, stop = [], ignoreEnd = false, signal, onPrompt }, emit) {
    wholeNumbers({ maxNew });
    const stops = [stop].flat();
    const texts = stops.map((text) => this.hold(`${text}\0`));
    const list = this.hold(new Uint32Array(texts));
    const prompt = this.hold(Int32Array.from(ids));
    let [from, busy, prompting] = [0, 0, null]; /* milliseconds in the module and in WebGPU's calls, and those before the first token */
    const onAbort = () => {
      if (this.usable) this.c.web_session_cancel(session);
    };
    signal?.addEventListener('abort', onAbort);
    this.listener = {
      text: (text, id) => {
        prompting ??= busy + performance.now() - from;
        emit({ text, id });
        return 1;
      },
      prompt: (done, all) => {
        queueMicrotask(() => onPrompt?.(done, all));
        return 1;
      },
    };
    try {
      this.good(this.c.web_generate_begin(session, prompt, ids.length, maxNew, list, stops.length, ignoreEnd ? 1 : 0), -1);
      for (let done = 0; !done;) {
        from = performance.now();
        done = this.good(this.c.web_generate_poll(session), -1);
        busy += performance.now() - from;
        if (!done) await this.glue.event();
        this.check();
      }
      const [stopped, given, reused, made, promptSeconds, seconds] = [0, 1, 2, 3, 4, 5].map((i) => this.out(i));
      this.last = { stop: STOPS[stopped], promptTokens: given, reusedTokens: reused, newTokens: made, promptSeconds, seconds, busySeconds: (busy - (prompting ?? busy)) / 1000 };
      return this.last;
    } catch (error) {
      if (error.status === 'cancelled') throw aborted(signal);
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.listener = null;
      if (this.usable) for (const at of [...texts, list, prompt]) this.c.free(at);
    }
  }
  hold(value) {
    const bytes = typeof value === 'string' ? this.glue.encoder.encode(value) : new Uint8Array(value.buffer);
    const at = this.glue.allocate(bytes.length);
    this.glue.bytes.set(bytes, at);
    return at;
  }

  /* A conversation is its ids: a few bytes a token, and the next prompt computes what is missing. */
  save() {
    return this.exclusive(async () => {
      const session = this.openSession();
      const ids = this.ids(this.c.web_session_ids(session));
      return { version: 2, model: this.fingerprint(), ids };
    });
  }
  /* As in the files of `sconce chat`: it stands for the program and the sizes of its data. */
  fingerprint() {
    this.good(this.c.web_model_fingerprint(this.model), -1);
    return [0, 1].map((i) => this.out(i).toString(16).padStart(8, '0')).join('');
  }
  restore(saved, { signal, onPrompt } = {}) {
    return this.exclusive(async () => {
      const session = this.openSession();
      if (saved?.version !== 2 || !Array.isArray(saved.ids)) throw new SconceError('bad file', 'this is no saved conversation');
      if (saved.model !== this.fingerprint())
        throw new SconceError('bad file', `saved from another model: its fingerprint is ${saved.model}, this one's is ${this.fingerprint()}`);
      if (!saved.ids.length) return this.good(this.c.web_session_rewind(session, 0), -1);
      this.setSampler(session, {});
      await this.generateIds(session, saved.ids, { maxNew: 1, ignoreEnd: true, signal, onPrompt }, () => {});
      return this.good(this.c.web_session_rewind(session, saved.ids.length), -1);
    });
  }
  reset() {
    return this.exclusive(async () => {
      if (this.session) this.good(this.c.web_session_rewind(this.session, 0), -1);
      for (const m of Object.values(this.methods)) if (m.state) this.good(this.c.web_state_reset(m.state), -1);
    });
  }

  stats() {
    const state = this.broken ? 0 : this.session ? this.c.web_session_state(this.session) : Object.values(this.methods ?? {}).find((m) => m.state)?.state;
    const stats = { heapBytes: this.glue.memory.buffer.byteLength, generation: this.last ?? null, glue: { ...this.glue.stats } };
    if (!state) return stats;
    this.c.web_state_stats(state);
    const names = ['weightBytes', 'stateBytes', 'transientBytes', 'stagingBytes', 'parameterBytes', 'buffers', 'bindGroups', 'kernels', 'objectsMade', 'dispatches'];
    names.forEach((name, i) => (stats[name] = this.out(i)));
    return stats;
  }

  /* Everything goes, also in the middle of something: whoever waits hears that it is gone. */
  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    try {
      if (!this.broken) this.close();
    } finally {
      this.glue.detach();
      this.c = this.listener = null;
      for (const file of this.files ?? []) file.close?.();
    }
  }
  close() {
    if (this.session) this.c.web_session_close(this.session);
    for (const m of Object.values(this.methods ?? {})) {
      if (m.state) this.c.web_state_close(m.state);
      this.c.web_method_close(m.handle);
    }
    if (this.tokenizer) this.c.web_tokenizer_close(this.tokenizer);
    if (this.model) this.c.web_model_close(this.model);
    if (this.device) this.c.web_device_close(this.device);
    if (this.piece) this.c.free(this.piece);
  }
}

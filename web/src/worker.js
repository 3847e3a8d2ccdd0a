/* The engine in a module worker: messages in, answers out. index.js is the other end.
 *
 * A message is {call, name, args}; the answers {call, value}, {call, error}, and before them any
 * number of {call, event, value}. {call, name: 'abort'} aborts the call of that number. */
import { Engine } from './engine.js';
import { pack, SconceError } from './error.js';

let engine = null;
const running = new Map();

const calls = {
  async load({ program, options, device }, context) {
    engine = await Engine.create({ ...device, signal: context.signal, onLog: (level, text) => context.tell('log', { level, text }) });
    engine.glue.onLost = (message) => postMessage({ event: 'lost', value: message });
    return engine.load(program, { ...options, signal: context.signal, onProgress: context.each('progress'), onNotice: context.each('notice') });
  },
  generate: ({ prompt, options }, context) =>
    engine.generate(prompt, { ...options, signal: context.signal, onPrompt: (done, all) => context.tell('prompt', { done, all }) }, context.each('text')),
  run: ({ inputs, options }, { signal }) => engine.run(inputs, { ...options, signal }),
  openMethod: ({ name }, context) => engine.openMethod(name, { signal: context.signal, onProgress: context.each('progress') }),
  tokenize: ({ text, options }) => engine.tokenize(text, options),
  detokenize: ({ ids }) => engine.detokenize(ids),
  save: () => engine.save(),
  restore: ({ saved }, { signal }) => engine.restore(saved, { signal }),
  reset: () => engine.reset(),
  dispose: async () => engine?.dispose(),
};

function context(call) {
  const control = new AbortController();
  const tell = (event, value) => postMessage({ call, event, value });
  return { control, signal: control.signal, tell, each: (event) => (value) => tell(event, value) };
}

self.onmessage = async ({ data: { call, name, args } }) => {
  if (name === 'abort') return running.get(call)?.abort();
  const own = context(call);
  running.set(call, own.control);
  try {
    if (!calls[name] || (!engine && name !== 'load' && name !== 'dispose')) throw new SconceError('bad argument', `no call '${name}' now`);
    const value = await calls[name](args, own);
    postMessage({ call, value, stats: engine?.disposed ? null : engine?.stats() });
  } catch (error) {
    postMessage({ call, error: pack(error) });
  } finally {
    running.delete(call);
  }
};

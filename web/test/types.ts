/* A program that uses all of the package: index.d.ts must take it, and refuse what is marked. */
import Default, { Sconce, SconceError, type ChatOptions, type Check, type Model, type Progress, type SavedConversation, type Status, type Tensor } from 'sconce';

export async function load(file: File, handle: FileSystemFileHandle, folder: FileSystemDirectoryHandle): Promise<Model> {
  const control = new AbortController();
  const model = await Sconce.load(handle, {
    tokenizer: '/tokenizer.json', tokenizerConfig: new URL('https://example.org/tokenizer_config.json'), data: [file, new ArrayBuffer(8)],
    signal: control.signal, onProgress: ({ loaded, total }: Progress) => console.log(loaded / total), onNotice: (text) => console.log(text.length),
    worker: false, cache: false,
  });
  // @ts-expect-error a folder is no file
  await Sconce.load(folder);
  // @ts-expect-error there is no such option
  await Sconce.load(file, { tokeniser: '/tokenizer.json' });
  return Default === Sconce ? model : Sconce.load(new Uint8Array(4), { worker: new Worker('worker.js') });
}

export async function talk(model: Model): Promise<string> {
  const options: ChatOptions = { maxNew: 5, temperature: 0.7, topK: 40, topP: 0.9, minP: 0.1, repetitionPenalty: 1.1, seed: 3n, stop: ['\n'], think: false };
  let text = '';
  for await (const part of model.chat([{ role: 'user', content: 'Hello!' }], options)) text += part.id >= 0 ? part.text : '';
  const generation = model.generate([1, 2, 3], { onPrompt: ({ done, all }) => console.log(done, all) });
  text += await generation.text();
  const busy: number | undefined = generation.result?.busySeconds;
  const saved: SavedConversation = await model.save();
  await model.restore(saved);
  // @ts-expect-error a prompt is text or ids
  model.generate({ text: 'Hello' });
  return text + (busy ?? 0) + (await model.detokenize(await model.tokenize(text, { bos: true })));
}

export async function run(model: Model): Promise<Tensor[]> {
  await model.run([new Float32Array(4), 1, 2n, true, [1, 2], { data: [1, 2], dims: [1, 2] }], { method: 'forward' });
  await model.run({ x0: new Int32Array(1), x1: 3 });
  await model.run({ x: [1] });
  // @ts-expect-error inputs have numbers
  await model.run({ image: [1] });
  for (const [name, method] of Object.entries(model.methods)) console.log(name, method?.inputs[0]?.dims, (await model.open(name)).language);
  const { dtype, dims, data } = (await model.run([1]))[0]!;
  console.log(dtype === 'float32', dims.length, data.byteLength, model.stats.heapBytes, model.device.f16, (await model.lost).message);
  await model.reset();
  await model.dispose();
  return [];
}

export async function more(): Promise<Status | null> {
  const found: Check = await Sconce.check();
  if (!found.ok) console.log(found.reason, found.advice);
  else console.log(found.features.length, found.limits.maxBufferSize);
  for (const { url, size, kept } of await Sconce.kept()) console.log(url, kept / size);
  await Sconce.forget();
  try {
    await Sconce.load('x.pte');
  } catch (error) {
    if (error instanceof SconceError) return error.status === 'internal error' || error.advice ? error.status : null;
  }
  // @ts-expect-error no such status
  const none: Status = 'fine';
  return none;
}

/* The web's tests: node web/test/all.mjs [PART…], parts: node, chromium, firefox, big, demo, bundle. Prints one line a test and
 * exits 1 if any failed. Needs `make web` and the browsers of tools/setup.sh. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve } from './server.mjs';
import * as browsers from './browsers.mjs';
import { testBig } from './big.mjs';
import { testBundles } from './bundle.mjs';
import { onThePage } from './demo.mjs';
import { testFaults } from './faults.mjs';
import { SHARED, casesInNode, testCases } from './fixtures.mjs';

const { ROOT } = browsers;
const PACKAGE = path.join(ROOT, 'build/web/package');
const read = (name) => fs.readFileSync(path.join(ROOT, name));
const golden = JSON.parse(read('models/stories15M/stories15M-4w.golden.json'));
const toy = JSON.parse(read('tests/data/goldens/toy.golden.json'));

let failed = 0;
async function test(name, work) {
  const start = performance.now();
  try {
    const note = await work();
    console.log(`ok ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)${note ? `: ${note}` : ''}`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}: ${error.stack ?? error}`);
  }
}

/* ---- what every host must give ----------------------------------------------------------------- */

const toyCalls = toy.cases.flatMap((c) => c.calls.map((call) => ({ ...call, case: c.name })));
function checkOutputs(outputs) {
  const logits = new Float32Array(Uint8Array.from(read('tests/data/goldens/toy.golden.bin')).buffer);
  outputs.forEach(({ dims, data }, i) => {
    const call = toyCalls[i];
    assert.deepEqual(dims, [1, call.tokens.length, toy.vocab]);
    const want = logits.subarray(call.logits / 4, call.logits / 4 + call.rows * toy.vocab);
    const have = data.slice(-call.rows * toy.vocab);
    want.forEach((w, k) => assert.ok(Math.abs(w - have[k]) < 1e-5, `call ${i}, element ${k}: ${have[k]}, want ${w}`));
  });
}
function checkToy({ outputs, wrong }) {
  checkOutputs(outputs);
  const said = wrong.map((w) => [w.sconce, w.status, w.message]);
  assert.deepEqual(said[0], [true, 'bad argument', "1 inputs, the method 'forward' takes 2"]);
  assert.equal(said[1][1], 'bad argument');
  assert.match(said[2][2], /no method 'backward'/);
  assert.deepEqual(said[3].slice(0, 2), [true, 'bad argument']);
  assert.match(said[3][2], /tokenizer/);
  assert.deepEqual([wrong[4].name, wrong[4].message], ['RangeError', 'of the caller']);
}

function checkFiles(out) {
  assert.equal(out.buffer, out.blob);
  assert.equal(out.file, out.view);
  assert.equal(out.handle, out.view);
  for (const name of ['garbage', 'cut', 'empty', 'tokenizer']) assert.equal(out[name]?.status, 'bad file', `${name}: ${JSON.stringify(out[name])}`);
  assert.ok(out.garbage.advice, 'a wrong file comes with a way on');
  assert.equal(out.missing.status, 'I/O error');
  assert.match(out.missing.message, /404/);
  assert.equal(out.aborted.name, 'AbortError');
}

const story = golden.cases.find((c) => c.name === 'greedy');
function checkStory(out, n) {
  const want = story.generated.slice(0, n);
  assert.deepEqual(out.greedy.slice(0, want.length), want);
  assert.equal(out.greedy.length, n);
  assert.equal(out.stopped.name, 'AbortError');
  assert.ok(out.heard >= 3);
  assert.ok(out.same, 'a conversation is restored as it was saved');
  assert.equal(out.last.loaded, out.last.total);
  assert.equal(out.after.message, 'the model was disposed of');
  const { seconds, newTokens } = out.result;
  return `load ${(out.loadMs / 1000).toFixed(1)} s, ${(newTokens / seconds).toFixed(1)} tokens/s`;
}

/* ---- language models ---- */

/* The story model that is shipped; where the collection is, a small one too, with all of its cases, and samples of it. */
const MODELS = [
  { name: 'stories15M', folder: 'models/stories15M', program: 'stories15M-4w.pte', golden, only: ['rewind'], widely: ['rewind', 'edge'], tolerance: 1e-3, tokens: 6 },
  ...(SHARED ? [{ name: 'stories260K', folder: path.join(SHARED, 'models/stories260K'), program: '4w.pte', only: ['chunks', 'rewind'], tolerance: 1e-3, tokens: 40,
    golden: JSON.parse(fs.readFileSync(path.join(SHARED, 'models/stories260K/4w.golden.json'))) }] : []),
];
const { VK_ICD_FILENAMES: _, ...COMMANDS } = { ...process.env, NODEVICE_SELECT: '1' };
const PROMPTS = [{ prompt: 'Once upon a time', seed: 15, temperature: 0.8, topP: 0.95 }, { prompt: 'Tom', seed: 7, temperature: 1.2, topK: 40 }];

/* On the device that the command takes by itself, not the one of this host. */
function native({ folder, program, tokens }, { prompt, seed, temperature, topP = 1, topK }) {
  const out = execFileSync(path.join(ROOT, 'build/sconce'), ['generate', '-m', path.resolve(ROOT, folder, program), '-p', prompt, '-n', String(tokens), '--json',
    '--seed', String(seed), '--temp', String(temperature), '--top-p', String(topP), ...(topK ? ['--top-k', String(topK)] : [])], { stdio: ['ignore', 'pipe', 'ignore'], env: COMMANDS });
  const events = out.toString().trim().split('\n').map((line) => JSON.parse(line));
  return events.filter((e) => e.event === 'text').map((e) => e.text).join('');
}

/* `host` has goldens({program, cases, tolerance}) and told({program, tokenizer, prompts}), files by their place below `at`. */
async function testModels(name, host, at, widely) {
  for (const m of MODELS) {
    const names = widely ? m.widely : m.only;
    const cases = m.golden.cases.filter((c) => !names || names.includes(c.name));
    await test(`${name}: ${m.name}, ${cases.length} cases of its golden`, async () => {
      assert.equal(cases.length, names?.length ?? 6);
      assert.deepEqual(await host.goldens({ program: at(m, m.program), cases, tolerance: m.tolerance }), []);
    });
    if (m === MODELS.at(-1)) await test(`${name}: ${m.name}, samples by seed are those of the command`, async () => {
      const prompts = PROMPTS.map((p) => ({ ...p, maxNew: m.tokens }));
      const texts = await host.told({ program: at(m, m.program), tokenizer: at(m, 'tokenizer.bin'), prompts });
      assert.deepEqual(texts, PROMPTS.map((p) => native(m, p)));
    });
  }
}

/* ---- Node -------------------------------------------------------------------------------------- */

async function inNode() {
  const { create, globals } = browsers.require('webgpu');
  Object.assign(globalThis, globals);
  const gpu = create([browsers.LOOPS]);
  const { Sconce, SconceError } = await import(pathToFileURL(path.join(PACKAGE, 'index.js')));
  const { Engine } = await import(pathToFileURL(path.join(PACKAGE, 'engine.js')));
  const toyFile = read('tests/data/goldens/toy.pte');

  await test('node: the toy model gives its goldens', async () => {
    const model = await Sconce.load(toyFile, { gpu });
    const outputs = [];
    for (const { tokens, pos } of toyCalls) {
      const [y] = await model.run([tokens, [pos]]);
      outputs.push({ dims: y.dims, data: Array.from(y.data) });
    }
    const bad = async (work) => work().then(() => null, (e) => ({ sconce: e instanceof SconceError, status: e.status, message: e.message }));
    const wrong = [await bad(() => model.run([[1, 2]])), await bad(() => model.run([[1, 2, 3, 4, 5, 6, 7, 8], [0]])),
      await bad(() => model.run([[1], [0]], { method: 'backward' })), await bad(() => model.generate('x').text()),
      await model.run([[1], [0]], { signal: AbortSignal.abort(new RangeError('of the caller')) }).catch((e) => e)];
    checkToy({ outputs, wrong });
    await model.dispose();
  });

  const refuses = async (work, text, status = 'bad argument') => {
    const error = await work().then(() => null, (e) => e);
    assert.ok(error instanceof SconceError, `no SconceError: ${error}`);
    assert.equal(error.status, status);
    assert.match(error.message, text);
  };

  await test('node: wrong numbers are refused, not changed', async () => {
    const model = await Sconce.load(toyFile, { gpu });
    await refuses(() => model.run([[1.5], [0]]), /input 0: element 0 is 1.5, which is no int64/);
    await refuses(() => model.run([[NaN], [0]]), /NaN/);
    await refuses(() => model.run([[2n ** 63n], [0]]), /9223372036854775808/);
    await refuses(() => model.generate([1.5]).text(), /1.5 is no id/);
    await refuses(() => model.generate([1], { seed: 1.5 }).text(), /seed is 1.5/);
    await refuses(() => model.generate([1], { seed: -1 }).text(), /seed is -1/);
    await refuses(() => model.generate([1], { maxNew: 0.5 }).text(), /maxNew is 0.5/);
    await model.dispose();
  });

  await test('node: ids without a tokenizer, and a conversation for its own model alone', async () => {
    const toyModel = () => Sconce.load(toyFile, { gpu });
    const [model, same] = [await toyModel(), await toyModel()];
    const ids = [];
    for await (const { id, text } of model.generate([1], { maxNew: 3 })) ids.push(id) && assert.equal(text, '');
    assert.equal(ids.length, 3);
    const saved = await model.save();
    assert.deepEqual(saved.ids, [1, ...ids]);
    assert.match(saved.model, /^[0-9a-f]{16}$/);
    await same.restore(JSON.parse(JSON.stringify(saved)));
    assert.deepEqual(await same.save(), saved);
    await refuses(() => same.restore({ ...saved, model: '0123456789abcdef' }), /saved from another model: its fingerprint is 0123456789abcdef/, 'bad file');
    await refuses(() => same.restore({ version: 1, vocabulary: 8, ids }), /no saved conversation/, 'bad file');
    await refuses(() => model.generate([1], { stop: 'x' }).text(), /stop strings need a tokenizer/);
    await Promise.all([model.dispose(), same.dispose()]);
  });

  await test('node: the method that is asked for is the one that generates', async () => {
    const model = await Sconce.load(read('tests/data/goldens/toy.pte'), { gpu, method: 'backward' });
    assert.equal(model.methods.forward, null);
    await refuses(() => model.generate([1]).text(), /backward/, 'bad argument');
    await model.dispose();
  });

  await test('node: paths and file: URLs', async () => {
    const absolute = path.join(ROOT, 'tests/data/goldens/toy.pte');
    for (const place of [absolute, path.relative(process.cwd(), absolute), pathToFileURL(absolute), pathToFileURL(absolute).href]) {
      const model = await Sconce.load(place, { gpu });
      assert.equal((await model.run([[1], [0]])).length, 1);
      await model.dispose();
    }
    await refuses(() => Sconce.load('nothing/here.pte', { gpu }), /cannot open nothing\/here.pte/, 'I/O error');
  });

  await test('node: adapters that say nothing of themselves', async () => {
    for (const without of [['info'], ['info', 'features']]) {
      const quiet = { requestAdapter: async (options) => {
        const adapter = await gpu.requestAdapter(options);
        if (!adapter) return null;
        const said = { features: new Set([...adapter.features].filter((f) => !/subgroup/.test(f))), limits: adapter.limits, info: adapter.info };
        for (const name of without) delete said[name];
        return { ...said, requestDevice: (d) => adapter.requestDevice(d) };
      } };
      const model = await Sconce.load(toyFile, { gpu: quiet });
      assert.equal(model.device.subgroups, false);
      assert.equal((await model.run([[1], [0]])).length, 1);
      await model.dispose();
      assert.equal((await Sconce.check({ gpu: quiet })).ok, true);
    }
  });

  await test('node: a model of floats, inputs as typed arrays', async () => {
    const { cases } = JSON.parse(read('tests/data/goldens/mul.golden.json'));
    const model = await Sconce.load(read('tests/data/goldens/mul.pte'), { gpu });
    const [a, b] = cases[0].inputs.map((x) => Float32Array.from(x.data));
    const [x0, x1] = [{ data: a, dims: cases[0].inputs[0].shape }, { data: b, dims: cases[0].inputs[1].shape }];
    for (const inputs of [[x0, x1], { x0, x1 }, { x1, x0 }]) {
      const [y] = await model.run(inputs);
      y.data.forEach((v, i) => assert.ok(Math.abs(v - a[i] * b[i]) < 1e-6));
    }
    await refuses(() => model.run({ a: x0, b: x1 }), /inputs x0, x1: a is none of them/);
    await refuses(() => model.run({ x0 }), /x1 was not given/);
    await refuses(() => model.run(a), /inputs are a list, or/);
    await refuses(() => model.run([x0, ['one']]), /input 1: element 0 is one, which is no float32/);
    await model.dispose();
  });

  await test('node: calls create nothing once each shape was seen', async () => {
    const engine = await Engine.create({ gpu });
    await engine.load(toyFile);
    await engine.run([[1, 2], [0]]);
    const before = engine.stats();
    for (let i = 0; i < 20; i++) await engine.run([[1, 2], [0]]);
    const after = engine.stats();
    assert.equal(after.objectsMade, before.objectsMade);
    assert.equal(after.heapBytes, before.heapBytes);
    const promises = (after.glue.promises - before.glue.promises) / 20;
    assert.ok(promises <= 12, `${promises} promises a call`);
    engine.dispose();
    return `${promises} promises a call`;
  });

  await testFaults(test, { gpu, Sconce, Engine, toyFile, refuses });
  await test('node: without a GPU there is a reason', async () => {
    const none = await Sconce.load(toyFile, { gpu: { requestAdapter: async () => null } }).then(() => null, (e) => e);
    assert.equal(none?.status, 'no device');
    assert.ok(none.advice);
    assert.equal((await Sconce.check({ gpu: { requestAdapter: async () => null } })).ok, false);
    assert.match((await Sconce.check({ gpu: null })).reason, /no WebGPU in Node/);
    await refuses(() => Sconce.load(toyFile), /no WebGPU in Node/, 'no device');
  });

  const { runGoldens, tell } = await import('./pages/language.js');
  const open = async ({ program, tokenizer }, use) => {
    const model = await Sconce.load(program, { gpu, tokenizer });
    const out = await use(model);
    await model.dispose();
    return out;
  };
  await testModels('node', { goldens: (g) => open(g, (model) => runGoldens(model, g.cases, g.tolerance)), told: (t) => open(t, (model) => tell(model, t.prompts)) },
    (m, file) => path.resolve(ROOT, m.folder, file));
  await test('node: a software device compiles the kernels for long prompts when one comes', async () => {
    let ahead;
    const model = await Sconce.load(path.join(ROOT, 'models/stories15M/stories15M-4w.pte'), { gpu, onProgress: (p) => (ahead = p.allKernels) });
    const kernels = async (ids) => {
      await model.generate(ids, { maxNew: 2 }).text();
      return model.stats.kernels;
    };
    const short = await kernels([1, 9038, 2501]);
    assert.equal(short, ahead, 'a short one has what it needs');
    const long = await kernels(golden.cases.find((c) => c.name === 'edge').calls[0].tokens.slice(0, 130));
    assert.ok(model.device.software && long > short, `${short} kernels, then ${long}`);
    await model.dispose();
  });

  await casesInNode(test, (program) => Sconce.load(program, { gpu }));
}

/* ---- browsers ---------------------------------------------------------------------------------- */

const ROOTS = { '/': path.join(ROOT, 'web/test/pages'), '/demo/': path.join(ROOT, 'web/demo'), '/sconce/': PACKAGE, '/models/': path.join(ROOT, 'models'), '/data/': path.join(ROOT, 'tests/data'),
  ...(SHARED ? { '/shared/': path.join(SHARED, 'fixtures'), '/stories260K/': path.join(SHARED, 'models/stories260K') } : {}) };

async function inBrowser(name, launch, tokens, stride) {
  const site = await serve(ROOTS);
  let browser = null;
  let page = null;
  /* Firefox has been seen to stand still, which no page can mend: what it left undone is done again by a fresh one. */
  let spare = 2;
  const run = async (f, arg) => {
    for (;;) {
      try {
        browser ??= await launch();
        if (!page) await (page = await browser.open(`${site.url}/`)).wait(() => window.ready);
        return await page.run(f, arg);
      } catch (error) {
        if (!(error instanceof browsers.NoAnswer) || spare-- <= 0) throw error;
        console.log(`note ${name}: ${error.message}; once more in another browser`);
        await browser?.kill();
        browser = page = null;
      }
    }
  };
  await test(`${name}: it has a GPU`, async () => {
    const { ok, adapter, reason } = await run(() => window.cases.check());
    assert.ok(ok, reason);
    return Object.values(adapter).filter(Boolean).join(' ');
  });
  await test(`${name}: the toy model in a worker`, async () => checkToy(await run((arg) => window.cases.toy(arg), { calls: toyCalls })));
  await test(`${name}: the toy model on the page's thread`, async () =>
    checkToy(await run((arg) => window.cases.toy(arg), { calls: toyCalls, worker: false })));
  await test(`${name}: files, and files that are none`, async () => checkFiles(await run(() => window.cases.files())));
  await test(`${name}: the story, token for token`, async () =>
    checkStory(await run((arg) => window.cases.stories(arg), { maxNew: tokens, ids: story.prompt }), tokens));
  await test(`${name}: what callers do wrong is a SconceError`, async () => {
    for (const wrong of await run(() => window.cases.misuse())) assert.deepEqual([wrong?.sconce, wrong?.status], [true, 'bad argument'], JSON.stringify(wrong));
  });
  const ask = (what) => (arg) => run(([f, given]) => window.cases[f](given), [what, arg]);
  await testModels(name, { goldens: ask('goldens'), told: ask('told') }, (m, file) => (m.name === 'stories260K' ? `/stories260K/${file}` : `/${m.folder}/${file}`), name === 'chromium');
  await testCases(test, name, stride, (cases) => run((list) => window.cases.fixtures(list), cases));
  if (name === 'chromium') await test(`${name}: a second load needs no download`, async () => {
    const kept = await run(() => window.cases.cache());
    assert.ok(kept.some((file) => file.url.endsWith('.pte') && file.kept > 1e7), JSON.stringify(kept));
    const asked = site.state.requests.filter((r) => r.url.endsWith('.pte') && r.range);
    const loads = asked.filter((r) => r.range === 'bytes=0-0').length;
    const last = asked.slice(asked.map((r) => r.range).lastIndexOf('bytes=0-0') + 1);
    assert.ok(loads >= 2);
    assert.deepEqual(last, [], 'the second load fetched again');
  });
  if (name === 'chromium') await fromElsewhere(name, run);
  await browser?.close();
  site.close();
}

/* The package and models from another port, which is another origin. */
async function fromElsewhere(name, run) {
  const other = await serve(ROOTS);
  const { state, url: origin } = other;
  state.shared = true;
  const fresh = (more) => Object.assign(state, { requests: [], gone: null, dated: false, heads: true, version: 1 }, more);
  const rangesOf = () => state.requests.filter((r) => r.url.endsWith('.pte') && r.method === 'GET').map((r) => r.range);
  await test(`${name}: the package from another origin has a worker of the page's`, async () => {
    const out = await run((arg) => window.cases.elsewhere(arg), { origin });
    assert.deepEqual(out, { dims: [1, 1, 8], started: ['blob:'] });
  });
  await test(`${name}: where no worker can be had the page's thread does`, async () => {
    for (const [more, arg] of [[{ gone: /worker\.js$/ }, {}], [{}, { noWorkers: true }]]) {
      fresh(more);
      assert.deepEqual((await run((given) => window.cases.elsewhere(given), { origin, ...arg })).dims, [1, 1, 8]);
    }
  });
  await test(`${name}: a model of another origin, whose headers cannot all be read`, async () => {
    const load = () => run((given) => window.cases.foreign(given), { origin });
    fresh();
    assert.deepEqual(await load(), { dims: [1, 1, 8], kept: 0 }, 'what has no version is not kept');
    assert.ok(rangesOf().every(Boolean), `by ranges, since HEAD says how long it is: ${rangesOf()}`);
    fresh({ heads: false });
    assert.deepEqual(await load(), { dims: [1, 1, 8], kept: 0 });
    assert.ok(rangesOf().includes(null), 'as a whole');
    fresh({ dated: true });
    assert.deepEqual(await load(), { dims: [1, 1, 8], kept: 1 });
    fresh({ dated: true });
    await load();
    const size = read('tests/data/goldens/toy.pte').length;
    assert.ok(!rangesOf().includes(`bytes=0-${size - 1}`), `kept: ${rangesOf()}`);
    fresh({ dated: true, version: 2 });
    await load();
    assert.ok(rangesOf().includes(`bytes=0-${size - 1}`), `a new version is fetched: ${rangesOf()}`);
  });
  other.close();
}

const parts = process.argv.slice(2);
const wanted = (part) => parts.length === 0 || parts.includes(part);
if (wanted('node')) await inNode();
if (wanted('chromium')) await inBrowser('chromium', browsers.chromium, 16, 4);
if (wanted('firefox')) await inBrowser('firefox', browsers.firefox, 16, 48);
if (wanted('big')) await testBig(test, ROOTS);
if (wanted('demo')) await onThePage(test);
if (wanted('bundle')) await testBundles(test, toyCalls, checkOutputs);
console.log(failed ? `${failed} failed` : 'all passed');
process.exit(failed ? 1 : 0);

/* The web's tests: node web/test/all.mjs [PART…], parts: node, chromium, firefox, big, demo, bundle. Prints one line a test and
 * exits 1 if any failed. Needs `make web` and the browsers of tools/setup.sh. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve } from './server.mjs';
import * as browsers from './browsers.mjs';
import { testBig } from './big.mjs';
import { testBundles } from './bundle.mjs';
import { onThePage } from './demo.mjs';
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
}

function checkFiles(out) {
  assert.equal(out.buffer, out.blob);
  assert.equal(out.file, out.view);
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
      await bad(() => model.run([[1], [0]], { method: 'backward' })), await bad(() => model.generate('x').text())];
    checkToy({ outputs, wrong });
    await model.dispose();
  });

  await test('node: a model of floats, inputs as typed arrays', async () => {
    const { cases } = JSON.parse(read('tests/data/goldens/mul.golden.json'));
    const model = await Sconce.load(read('tests/data/goldens/mul.pte'), { gpu });
    const [a, b] = cases[0].inputs.map((x) => Float32Array.from(x.data));
    const [y] = await model.run({ a: { data: a, dims: cases[0].inputs[0].shape }, b: { data: b, dims: cases[0].inputs[1].shape } });
    y.data.forEach((v, i) => assert.ok(Math.abs(v - a[i] * b[i]) < 1e-6));
    await model.dispose();
  });

  await test('node: dispose gives every object back, ten times over', async () => {
    for (let i = 0; i < 10; i++) {
      const engine = await Engine.create({ gpu });
      await engine.load(toyFile);
      await engine.run([[1], [0]]);
      engine.dispose();
      assert.equal(engine.glue.alive, 0);
    }
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

  await test('node: a lost device fails the call and says so', async () => {
    const devices = [];
    const spy = { requestAdapter: async (options) => {
      const adapter = await gpu.requestAdapter(options);
      if (!adapter) return null;
      return { features: adapter.features, limits: adapter.limits, info: adapter.info, requestDevice: async (d) => {
        devices.push(await adapter.requestDevice(d));
        return devices.at(-1);
      } };
    } };
    const model = await Sconce.load(toyFile, { gpu: spy });
    devices[0].destroy();
    await devices[0].lost;
    await new Promise((resolve) => setTimeout(resolve, 20));
    const seen = [];
    for (let i = 0; i < 3; i++) await model.run([[1], [0]]).catch((e) => seen.push(e));
    assert.equal(seen.at(-1)?.status, 'device lost', seen.map(String).join('; '));
    assert.ok(seen.at(-1).advice);
    await model.dispose();
  });

  await test('node: no memory on the device is the load\'s error', async () => {
    const tight = { requestAdapter: async (options) => {
      const adapter = await gpu.requestAdapter(options);
      if (!adapter) return null;
      return { features: adapter.features, limits: adapter.limits, info: adapter.info, requestDevice: async (d) => {
        const device = await adapter.requestDevice(d);
        const create = device.createBuffer.bind(device);
        let n = 0;
        device.createBuffer = (desc) => {
          if (n++ > 2) throw new RangeError('too large');
          return create(desc);
        };
        return device;
      } };
    } };
    const error = await Sconce.load(toyFile, { gpu: tight }).then(() => null, (e) => e);
    assert.equal(error?.status, 'out of GPU memory', String(error));
    assert.ok(error.advice);
  });

  await test('node: without a GPU there is a reason', async () => {
    const none = await Sconce.load(toyFile, { gpu: { requestAdapter: async () => null } }).then(() => null, (e) => e);
    assert.equal(none?.status, 'no device');
    assert.ok(none.advice);
    assert.equal((await Sconce.check({ gpu: { requestAdapter: async () => null } })).ok, false);
    assert.match((await Sconce.check({ gpu: null })).reason, /no WebGPU/);
  });

  await casesInNode(test, (program) => Sconce.load(program, { gpu }));
}

/* ---- browsers ---------------------------------------------------------------------------------- */

const ROOTS = { '/': path.join(ROOT, 'web/test/pages'), '/sconce/': PACKAGE, '/models/': path.join(ROOT, 'models'), '/data/': path.join(ROOT, 'tests/data'),
    ...(SHARED ? { '/shared/': path.join(SHARED, 'fixtures') } : {}) };

async function inBrowser(name, launch, tokens, stride) {
  const site = await serve(ROOTS);
  const browser = await launch();
  const { run, wait } = await browser.open(`${site.url}/`);
  await wait(() => window.ready);
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
  await browser.close();
  site.close();
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

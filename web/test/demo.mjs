/* The demo page as a person uses it, in Chromium, with pictures in build/web/shots: load, chat, stop, another model,
 * offline; and each failure that a user meets has a sentence and a way on. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import * as browsers from './browsers.mjs';
import { SHARED } from './fixtures.mjs';
import { serve } from './server.mjs';

const { ROOT } = browsers;
const SHOTS = path.join(ROOT, 'build/web/shots');
/* A PNG of one colour. */
function png(width, height, colour) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(data.length, 0);
    ends.writeUInt32BE(zlib.crc32(body), 4);
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8); /* bits of a sample, RGB */
  const rows = Buffer.concat(Array(height).fill(Buffer.from([0, ...Array(width).fill(colour).flat()])));
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('IDAT', zlib.deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
}

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());
const shotsOf = (page) => (name) => page.screenshot({ path: path.join(SHOTS, `${name}.png`) });

async function setLongest(page, tokens) {
  await page.click('#settings-button');
  await page.fill('#max-new', String(tokens));
  await page.click('#settings-button');
}

export async function onThePage(test) {
  fs.mkdirSync(SHOTS, { recursive: true });
  const other = SHARED ? [path.join(SHARED, 'models/stories260K'), '4w.pte', /^Once upon a time, there was a /]
    : [path.join(ROOT, 'build/web/demo/models'), 'stories15M-4w.pte', /^Once upon a time, there was a little girl/];
  const [folder, program, says] = other;
  const site = await serve({ '/': path.join(ROOT, 'build/web/demo'), '/picked/': folder });
  const browser = await browsers.chromium({ args: AFTER_A_CRASH });
  const { page } = await browser.open(`${site.url}/`, { viewport: { width: 1000, height: 720 }, permissions: ['clipboard-read', 'clipboard-write'] });
  page.setDefaultTimeout(300000);
  const shot = shotsOf(page);
  await test('demo: load the story model, chat with the keyboard', async () => {
    await page.click('#story');
    await page.waitForSelector('#send:enabled');
    await page.click('#settings-button');
    await page.fill('#max-new', '12');
    await page.fill('#temperature', '0');
    await page.click('#settings-button');
    await page.fill('#prompt', 'Once upon a time');
    await page.press('#prompt', 'Enter');
    await page.waitForFunction(() => /^12 tokens, .*; prompt/.test(document.getElementById('speed').textContent));
    assert.match(await page.textContent('#messages li:last-child'), /^Once upon a time, there was a little girl named Lily/);
    await shot('desktop');
    const speed = await page.textContent('#speed');
    const [each, own, gpus] = /12 tokens, ([\d.]+) tokens\/s, ([\d.]+) ms of each in the module and in WebGPU's calls, ([\d.]+) for the GPU/.exec(speed).slice(1).map(Number);
    assert.ok(own > 0 && gpus > own && Math.abs(1000 / each - own - gpus) < 0.1 * (own + gpus), speed);
    await page.click('#copy');
    await page.waitForFunction(() => document.getElementById('copy').textContent === 'Copied');
    assert.match(await clipboard(page), /^Once upon a time\n\nOnce upon a time, there was a little girl named Lily/);
    return speed;
  });
  await test('demo: stop in the middle', async () => {
    await setLongest(page, 250); /* a dozen would be told before the button is found */
    await page.fill('#prompt', 'Tom');
    await page.press('#prompt', 'Enter');
    await page.waitForFunction(() => document.querySelector('#messages li:last-child').textContent.length > 'Tom'.length);
    await page.click('#stop');
    await page.waitForSelector('#send:visible');
    await setLongest(page, 12);
  });
  await test('demo: another model in the chat, picked and dropped', async () => {
    await page.setInputFiles('#files', path.join(ROOT, 'tests/data/goldens/toy.pte'));
    await page.waitForSelector('#notice:visible');
    assert.match(await page.textContent('#notice-text'), /^This model came without a tokenizer, so it cannot chat\.\n/);
    assert.equal(await page.textContent('#model-name'), 'toy.pte');
    assert.ok(await page.isDisabled('#send'));
    await page.setInputFiles('#files', path.join(folder, 'tokenizer.bin'));
    await page.waitForFunction(() => document.getElementById('notice-text').textContent.startsWith('None of these files is a .pte model.'));
    const tell = async () => {
      await page.waitForSelector('#send:enabled');
      assert.equal(await page.textContent('#model-name'), program);
      assert.equal(await page.locator('#messages li').count(), 0, 'another model begins anew');
      await page.fill('#prompt', 'Once upon a time');
      await page.press('#prompt', 'Enter');
      await page.waitForFunction(() => /12 tokens, /.test(document.getElementById('speed').textContent));
      assert.match(await page.textContent('#messages li:last-child'), says);
    };
    await page.setInputFiles('#files', [program, 'tokenizer.bin'].map((name) => path.join(folder, name)));
    await tell();
    await page.setInputFiles('#files', path.join(ROOT, 'tests/data/goldens/toy.pte'));
    await page.waitForFunction(() => document.getElementById('model-name').textContent === 'toy.pte' && document.getElementById('progress').hidden);
    await page.evaluate(async (names) => {
      const dataTransfer = new DataTransfer();
      for (const name of names) dataTransfer.items.add(new File([await (await fetch(`/picked/${name}`)).blob()], name));
      document.dispatchEvent(new DragEvent('dragover', { dataTransfer, cancelable: true }));
      if (document.getElementById('drop').hidden) throw new Error('nothing says where to drop');
      document.dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
    }, [program, 'tokenizer.bin']);
    await tell();
    assert.ok(await page.isHidden('#drop'));
    await page.click('#clear');
    await page.waitForFunction(() => !document.querySelector('#messages li'));
  });
  await test('demo: the check, and its report', async () => {
    await page.click('#tab-check');
    await page.click('#check-start');
    await page.waitForSelector('#check-copy:enabled');
    const report = await page.textContent('#report');
    const shipped = fs.readdirSync(path.join(ROOT, 'build/web/demo/cases'), { recursive: true }).filter((name) => path.basename(name) === 'case.json').length;
    assert.ok(shipped > 50, `a case of every family, ${shipped} of them`);
    assert.match(report, new RegExp(`^operators {4}right, all ${shipped} cases$`, 'm'));
    assert.match(report, /^tokens {7}right, all 12$/m);
    assert.match(report, /^speed .* for the GPU; prompt \d+ ms$/m);
    await shot('check');
    await page.click('#check-copy');
    await page.waitForFunction(() => document.getElementById('check-copy').textContent === 'Copied');
    assert.equal(await clipboard(page), report);
  });
  await test('demo: any model on the run tab', async () => {
    await page.click('#tab-run');
    await page.setInputFiles('#run-files', path.join(ROOT, 'tests/data/goldens/toy.pte'));
    await page.waitForSelector('#run-form button:visible');
    await page.click('#run-form button');
    await page.waitForSelector('.tensor');
    assert.match(await page.textContent('.tensor strong'), /output 0: float32 \[1,7,8\]/);
    await shot('run');
  });
  await test('demo: a picture goes in and comes out in its colour', async () => {
    await page.setInputFiles('#run-files', path.join(ROOT, 'tests/data/ops/pool/max_alone/model.pte'));
    await page.waitForSelector('#inputs .picture');
    await page.setInputFiles('#inputs .picture', { name: 'orange.png', mimeType: 'image/png', buffer: png(60, 50, [255, 128, 0]) });
    await page.waitForFunction(() => document.querySelector('#inputs input').value === 'orange.png');
    await page.click('#run-form button');
    await page.waitForSelector('.tensor canvas');
    const seen = await page.evaluate(() => [...document.querySelector('.tensor canvas').getContext('2d').getImageData(0, 0, 1, 1).data]);
    assert.deepEqual(seen, [255, 128, 0, 255]);
    await page.fill('#inputs input', '1.5 x');
    await page.click('#run-form button');
    await page.waitForSelector('#notice:visible');
    assert.equal(await page.textContent('#notice-text'), "'x' is no number. Write numbers, or zeros, ones, random.");
    await page.fill('#inputs input', '1.5 2');
    await page.click('#run-form button');
    await page.waitForFunction(() => document.getElementById('notice-text').textContent === 'Input 0: 8 bytes of data, its dims need 360.');
  });
  await test('demo: a wrong file has a sentence and a way on', async () => {
    await page.setInputFiles('#run-files', { name: 'x.pte', mimeType: '', buffer: Buffer.alloc(5000, 7) });
    await page.waitForSelector('#notice:visible');
    assert.match(await page.textContent('#notice'), /exported/);
  });
  await test('demo: phone, dark, offline after the first visit', async () => {
    await page.setViewportSize({ width: 390, height: 780 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForFunction(() => navigator.serviceWorker.controller || navigator.serviceWorker.ready.then(() => true));
    await page.waitForTimeout(1000);
    await page.context().setOffline(true);
    await page.reload();
    await page.waitForSelector('#story');
    await shot('phone-offline');
    await page.click('#story'); /* the model was kept: it loads without a network */
    await page.waitForSelector('#send:enabled');
    await page.context().setOffline(false);
    await page.click('#tab-check');
    await page.waitForTimeout(300);
    await shot('phone-check');
  });
  await lostDevice(test, page, shot);
  await browser.close();
  await inTheBackground(test, site);
  await failures(test, site);
  site.close();
}

/* A browser that saw the GPU's process end may keep a page from it, or draw without one. */
const AFTER_A_CRASH = ['--disable-gpu-process-crash-limit', '--disable-domain-blocking-for-3d-apis'];

/* The GPU's process is killed, as a driver's crash does. A new one takes a moment: until then there is no GPU, and the
 * button comes again. */
async function lostDevice(test, page, shot) {
  await test('demo: a lost GPU has a sentence and a button', async () => {
    await page.click('#tab-chat');
    await page.waitForSelector('#send:enabled');
    const gpu = browsers.descendants().filter((pid) => fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=gpu-process'));
    assert.ok(gpu.length > 0);
    for (const pid of gpu) process.kill(pid, 'SIGKILL');
    await page.waitForSelector('#notice-action:visible');
    assert.match(await page.textContent('#notice-text'), /GPU was lost/);
    assert.ok(await page.isDisabled('#send'));
    await shot('phone-lost');
    for (let i = 0; i < 20 && !(await page.isEnabled('#send')); i++) {
      await page.click('#notice-action');
      await page.waitForSelector('#send:enabled, #notice-action:visible');
      if (i) await page.waitForTimeout(500);
    }
    assert.ok(await page.isEnabled('#send'));
    assert.ok(await page.isHidden('#notice'));
  });
}

/* Code before the worker's own. */
const beforeWorker = (page, code) => page.route('**/worker.js', async (route) => {
  const response = await route.fetch();
  await route.fulfill({ response, body: `${code}\n${await response.text()}` });
});

/* As browsers hold back a tab that nobody sees: a page that is hidden, timers of a second and more. */
const SLOW = 'const timer = globalThis.setTimeout; globalThis.setTimeout = (f, ms = 0, ...args) => timer(f, Math.max(1000, ms), ...args);';
async function inTheBackground(test, site) {
  await test('demo: a tab in the background goes on, and says why it was slow', async () => {
    const browser = await browsers.chromium();
    const { page } = await browser.open('about:blank', { serviceWorkers: 'block' });
    page.setDefaultTimeout(300000);
    await page.addInitScript(`Object.defineProperty(Document.prototype, 'hidden', { get: () => true }); ${SLOW}`);
    await beforeWorker(page, SLOW);
    await page.goto(site.url);
    await page.click('#story');
    await page.waitForSelector('#send:enabled');
    await page.evaluate(() => Object.assign(document.getElementById('max-new'), { value: '12' }) && (document.getElementById('temperature').value = '0'));
    await page.fill('#prompt', 'Once upon a time');
    await page.press('#prompt', 'Enter');
    await page.waitForFunction(() => /^12 tokens, .*; slower while the tab was in the background$/.test(document.getElementById('speed').textContent));
    assert.match(await page.textContent('#messages li:last-child'), /^Once upon a time, there was a little girl named Lily/);
    await browser.close();
  });
}

/* Browsers that lack something: `page` is code that runs before the page, `worker` before its worker. */
const LACKS = {
  'no WebGPU': { page: "Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined })", says: /no WebGPU.*\n.*Chrome/s },
  'a GPU that is not trusted': { page: 'GPU.prototype.requestAdapter = async () => null', says: /no GPU that it trusts.*\n.*driver/s },
  'no memory on the GPU': { worker: "GPUDevice.prototype.createBuffer = () => { throw new RangeError('too large') };", says: /^Out of GPU memory.*\n.*smaller model/s, button: true },
  'no network': { gone: /\.pte$/, says: /^Cannot fetch.*\n.*connection/s, button: true },
};
async function failures(test, site) {
  for (const [name, { page: before, worker, gone, says, button }] of Object.entries(LACKS)) {
    await test(`demo: ${name} has a sentence and a way on`, async () => {
      const browser = await browsers.chromium();
      const { page } = await browser.open('about:blank', { viewport: { width: 1000, height: 720 }, serviceWorkers: 'block' });
      page.setDefaultTimeout(120000);
      if (before) await page.addInitScript(before);
      if (worker) await beforeWorker(page, worker);
      if (gone) await page.route(gone, (route) => route.abort());
      await page.goto(site.url);
      if (!before) await page.click('#story');
      await page.waitForSelector('#notice:visible');
      assert.match(await page.textContent('#notice-text'), says);
      assert.equal(await page.isVisible('#notice-action'), !!button);
      await shotsOf(page)(`fails-${name.replaceAll(' ', '-')}`);
      await browser.close();
    });
  }
}

/* Big files over bad networks, in Chromium: connections that break, servers that are busy, files that change, damaged
 * blocks, a full disk, an abort; and how much memory a page takes for a model of hundreds of megabytes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import * as browsers from './browsers.mjs';
import { serve } from './server.mjs';

const { ROOT } = browsers;
const WRITER = path.join(ROOT, 'build/sconce_big');
const SMALL = 48; /* megabytes: six weights in two parts */
const BIG = 712;
const MOST = 260; /* megabytes: an empty page has 30, the module 80 */
const MB = 1 << 20;

function model(megabytes) {
  const place = path.join(ROOT, `build/web/big/${megabytes}`);
  fs.mkdirSync(place, { recursive: true });
  execFileSync(WRITER, [place, String(megabytes)]);
  return place;
}
const sumOf = (megabytes) => 1 + ((megabytes / 8) * (megabytes / 8 + 1)) / 2;
function right(out, megabytes) {
  assert.equal(out.failed, null, JSON.stringify(out.failed));
  assert.deepEqual(out.values, [sumOf(megabytes), sumOf(megabytes)]);
}

/* What was asked for, without the one byte that asks for the size. */
const ranges = (state) => state.requests.filter((r) => r.range && r.range !== 'bytes=0-0').map((r) => r.range.match(/\d+/g).map(Number));
const asked = (state) => ranges(state).reduce((sum, [from, to]) => sum + to - from + 1, 0);

/* Into `peak`, in MB, the most that the process of a page had: of its own, and with the browser's program, which all of
 * its processes share. */
function watch(peak) {
  for (const pid of browsers.descendants()) {
    try {
      if (!fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer')) continue;
      const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
      const mb = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)[1]) / 1024;
      peak.own = Math.max(peak.own, mb('RssAnon') + mb('RssShmem'));
      peak.all = Math.max(peak.all, mb('VmHWM'));
    } catch {
      /* it has ended */
    }
  }
}

export async function testBig(test, roots) {
  if (!fs.existsSync(WRITER)) return console.log('skip big: cmake --build --preset release --target sconce_big');
  const site = await serve({ ...roots, '/small/': model(SMALL), '/big/': model(BIG) });
  const { state } = site;
  const browser = await browsers.chromium();
  const { page, run, wait } = await browser.open(`${site.url}/`);
  await wait(() => window.ready);
  const big = (arg) => run((given) => window.cases.big(given), arg);
  const fresh = async (more = {}) => {
    await run(() => window.cases.forget());
    Object.assign(state, { requests: [], ranges: true, cutAt: [0, 0], busy: 0, ...more });
  };

  await test('big: a connection that breaks goes on from the byte it reached', async () => {
    await fresh({ cutAt: [4, 1000000], busy: 2 });
    right(await big({ folder: 'small' }), SMALL);
    assert.ok(ranges(state).some(([from]) => from % (4 * MB) === 1000000), JSON.stringify(ranges(state)));
  });
  await test('big: a server that is gone is an error; what arrived is kept, and the next load fetches the rest', async () => {
    await fresh();
    const stopped = await big({ folder: 'small', stop: 20 * MB });
    assert.equal(stopped.failed?.name, 'AbortError');
    const first = asked(state);
    assert.ok(first < (SMALL - 8) * MB, `an abort stops the download: ${first} bytes were asked for`);
    Object.assign(state, { requests: [], cutAt: [1000, 1] });
    const gone = await big({ folder: 'small' });
    assert.equal(gone.failed?.status, 'I/O error', JSON.stringify(gone.failed));
    assert.match(gone.failed.advice, /load again/);
    Object.assign(state, { requests: [], cutAt: [0, 0] });
    right(await big({ folder: 'small' }), SMALL);
    assert.ok(asked(state) <= (SMALL + 1) * MB - 16 * MB, `the second load asked for ${asked(state)} bytes`);
    state.requests = [];
    right(await big({ folder: 'small' }), SMALL);
    assert.equal(asked(state), 0, 'a third load asks for nothing');
  });
  await test('big: a damaged block is fetched again, a new version all of it', async () => {
    assert.ok(await run(() => window.cases.damage('big.1.ptd')));
    state.requests = [];
    right(await big({ folder: 'small' }), SMALL);
    assert.equal(asked(state), 4 * MB);
    Object.assign(state, { requests: [], version: 2 });
    right(await big({ folder: 'small' }), SMALL);
    assert.ok(asked(state) > SMALL * MB);
  });
  await test('big: a server without range requests', async () => {
    await fresh({ ranges: false });
    right(await big({ folder: 'small' }), SMALL);
  });
  await test('big: a full disk is a notice, not an error, and room helps', async () => {
    await fresh();
    const client = await page.context().newCDPSession(page);
    await client.send('Storage.overrideQuotaForOrigin', { origin: site.url, quotaSize: 12 * MB });
    const full = await big({ folder: 'small' });
    right(full, SMALL);
    assert.match(full.notices.join(), /no room to keep this model/);
    await client.send('Storage.overrideQuotaForOrigin', { origin: site.url });
    const roomy = await big({ folder: 'small' });
    right(roomy, SMALL);
    assert.deepEqual(roomy.notices, []);
    assert.ok(roomy.kept.reduce((sum, file) => sum + file.kept, 0) >= SMALL * MB, JSON.stringify(roomy.kept));
  });
  await run(() => window.cases.forget());
  await browser.close();
  await testMemory(test, site);
  site.close();
  for (const size of [SMALL, BIG]) fs.rmSync(path.join(ROOT, `build/web/big/${size}`), { recursive: true });
}

/* In a browser that nobody looks into, the model kept and not. */
async function testMemory(test, site) {
  for (const cache of [true, false]) {
    await test(`big: a model of ${BIG} MB does not lie in the page, ${cache ? 'kept' : 'not kept'}`, async () => {
      site.state.told = null;
      const arg = encodeURIComponent(JSON.stringify({ folder: 'big', cache }));
      const browser = browsers.alone(`${site.url}/alone.html?case=big&arg=${arg}`);
      const peak = { own: 0, all: 0 };
      for (const end = performance.now() + 300000; !site.state.told && performance.now() < end;) {
        watch(peak);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await browser.close();
      right(site.state.told ?? { failed: 'no answer' }, BIG);
      assert.ok(peak.own > 20 && peak.own < MOST, `the page had ${peak.own.toFixed(0)} MB`);
      return `at most ${peak.own.toFixed(0)} MB, ${peak.all.toFixed(0)} with the browser's program; the module has ${(site.state.told.stats.heapBytes / MB).toFixed(0)} MB`;
    });
  }
}

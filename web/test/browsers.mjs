/* Headless browsers with a software device, as one interface: open a page, run a function in it. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';

export const ROOT = path.resolve(new URL('../..', import.meta.url).pathname);
export const require = createRequire(path.join(ROOT, 'build/deps/node/package.json'));

/* Memory of workgroups is cleared by loops, as on GPUs, not by an initial value, which SwiftShader unrolls: it compiles
 * seven times as fast. */
export const LOOPS = 'disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension';

const pageOf = (page) => ({ page, run: (f, arg) => patiently(page, f, arg), wait: (f) => opening(() => page.waitForFunction(f)) });

const CHROMIUM = '/usr/bin/chromium';
const SWIFT = ['--no-sandbox', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--disable-dev-shm-usage', `--${LOOPS}`];

/* Chromium that nobody looks into: who does makes it keep up to 100 MB of what pages fetch. */
export function alone(url) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sconce-'));
  const browser = spawn(CHROMIUM, ['--headless=new', ...SWIFT, '--no-first-run', `--user-data-dir=${folder}`, url], { stdio: 'ignore' });
  return { close: async () => {
    const ended = new Promise((resolve) => browser.on('exit', resolve));
    browser.kill();
    await ended;
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  } };
}

export async function chromium(options = {}) {
  const { chromium: launcher } = require('playwright-core');
  const browser = await launcher.launch({
    executablePath: CHROMIUM, headless: true, args: [...SWIFT, ...(options.args ?? [])],
  });
  return { open: async (url, context = {}) => {
    const page = await (await browser.newContext(context)).newPage();
    page.on('pageerror', (error) => console.error('page:', error.message));
    await page.goto(url);
    return pageOf(page);
  }, close: () => browser.close(), kill: () => browser.close() };
}

/* A page that stands still: its message says at what. */
export class NoAnswer extends Error {}
const STILL_S = 180; /* without a new step */
const MOST_S = 900; /* in all */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function within(seconds, work, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswer(`${what} within ${seconds} s`)), 1000 * seconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/* Begins f(arg) in a page and asks now and then whether it is done: it may take long as long as it goes on, which the
 * pages' steps tell (pages/at.js). No single question to the browser waits for a GPU. */
async function patiently(page, f, arg) {
  const ask = (work) => within(STILL_S, work, 'no answer');
  const begin = ([source, given]) => {
    const asked = { done: false };
    window.asked = asked;
    const work = (0, eval)(`(${source})`);
    Promise.resolve(given).then(work).then(
      (value) => Object.assign(asked, { value, done: true }),
      (error) => Object.assign(asked, { error: String(error?.stack ?? error), done: true }));
  };
  await ask(page.evaluate(begin, [String(f), arg]));
  const started = performance.now();
  let [steps, moved, nap] = [-1, started, 5];
  for (;;) {
    const seen = await ask(page.evaluate(() => ({ ...window.asked, step: window.step, steps: window.steps })));
    if (seen.error) throw new Error(seen.error);
    if (seen.done) return seen.value;
    const now = performance.now();
    if (seen.steps !== steps) [steps, moved] = [seen.steps, now];
    if (now - moved > 1000 * STILL_S || now - started > 1000 * MOST_S)
      throw new NoAnswer(`${((now - moved) / 1000).toFixed(0)} of ${((now - started) / 1000).toFixed(0)} s at: ${seen.step}`);
    await sleep((nap = Math.min(2 * nap, 250)));
  }
}

/* A browser that does not start, or does not open a page, stands still too. */
async function opening(work) {
  try {
    return await work();
  } catch (error) {
    throw /Timeout|Protocol|TargetClose/.test(`${error.name} ${error.constructor?.name}`) ? new NoAnswer(`opening: ${error.message}`) : error;
  }
}

export async function firefox() {
  const puppeteer = require('puppeteer-core');
  const executablePath = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((file) => fs.existsSync(file));
  const browser = await opening(() => (puppeteer.default ?? puppeteer).launch({
    browser: 'firefox', executablePath, headless: true, timeout: 1000 * STILL_S, protocolTimeout: 2000 * STILL_S,
    extraPrefsFirefox: { 'dom.webgpu.enabled': true, 'dom.webgpu.workers.enabled': true, 'gfx.webgpu.ignore-blocklist': true },
  }));
  return { open: (url) => opening(async () => {
    const page = await browser.newPage();
    page.setDefaultTimeout(1000 * STILL_S);
    page.on('pageerror', (error) => console.error('page:', error.message));
    await page.goto(url);
    return pageOf(page);
  }), close: () => browser.close(), kill: () => browser.process().kill('SIGKILL') };
}

/* Processes that this one started, and those that they did. */
export function descendants() {
  const parent = new Map();
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)) {
    try {
      parent.set(pid, Number(/\) \S (\d+)/.exec(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))[1]));
    } catch {
      /* it has ended */
    }
  }
  const ours = (pid) => pid === process.pid || (parent.has(pid) && ours(parent.get(pid)));
  return [...parent.keys()].filter((pid) => pid !== process.pid && ours(pid));
}

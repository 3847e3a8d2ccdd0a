/* Headless browsers with a software device, as one interface: open a page, run a function in it. */
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

export const ROOT = path.resolve(new URL('../..', import.meta.url).pathname);
export const require = createRequire(path.join(ROOT, 'build/deps/node/package.json'));

/* Memory of workgroups is cleared by loops, as on GPUs, not by an initial value, which SwiftShader unrolls: it compiles
 * seven times as fast. */
export const LOOPS = 'disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension';

export async function chromium(options = {}) {
  const { chromium: launcher } = require('playwright-core');
  const browser = await launcher.launch({
    executablePath: '/usr/bin/chromium', headless: true,
    args: ['--no-sandbox', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--disable-dev-shm-usage', `--${LOOPS}`, ...(options.args ?? [])],
  });
  return { open: async (url, context = {}) => {
    const page = await (await browser.newContext(context)).newPage();
    page.on('pageerror', (error) => console.error('page:', error.message));
    await page.goto(url);
    return { page, run: (f, arg) => page.evaluate(f, arg), wait: (f) => page.waitForFunction(f), shot: (file) => page.screenshot({ path: file }) };
  }, close: () => browser.close() };
}

/* What a page did not answer in time: its message says what the page was at. */
export class NoAnswer extends Error {}
const MOST_S = 180;

/* `work` is the page's; cases.js keeps in window.step what it is at. */
async function answered(page, work) {
  const timers = [];
  const after = (seconds) => new Promise((resolve) => timers.push(setTimeout(resolve, 1000 * seconds)));
  const late = after(MOST_S).then(async () => {
    const step = await Promise.race([page.evaluate(() => window.step), after(10).then(() => 'nothing, its thread is busy')]);
    throw new NoAnswer(`no answer within ${MOST_S} s, the page is at: ${step}`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timers.forEach(clearTimeout);
  }
}

export async function firefox() {
  const puppeteer = require('puppeteer-core');
  const executablePath = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((file) => fs.existsSync(file));
  const browser = await (puppeteer.default ?? puppeteer).launch({
    browser: 'firefox', executablePath, headless: true, protocolTimeout: 2000 * MOST_S,
    extraPrefsFirefox: { 'dom.webgpu.enabled': true, 'dom.webgpu.workers.enabled': true, 'gfx.webgpu.ignore-blocklist': true },
  });
  return { open: async (url) => {
    const page = await browser.newPage();
    page.on('pageerror', (error) => console.error('page:', error.message));
    await page.goto(url);
    return { page, run: (f, arg) => answered(page, page.evaluate(f, arg)), wait: (f) => page.waitForFunction(f), shot: (file) => page.screenshot({ path: file }) };
  }, close: () => browser.close(), kill: () => browser.process().kill('SIGKILL') };
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

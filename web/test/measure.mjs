/* Native Dawn and Chromium on the same SwiftShader, in turn: node web/test/measure.mjs [TOKENS [ROUNDS]]. A processor's
 * seconds are counted besides wall time, since they hold where others use the machine too: what a story of 2 TOKENS
 * takes above one of TOKENS, of all processes that take part. Needs `make web dawn program` and the browsers of
 * tools/setup.sh. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { serve } from './server.mjs';
import * as browsers from './browsers.mjs';

const { ROOT } = browsers;
const tokens = Number(process.argv[2] ?? 24);
const rounds = Number(process.argv[3] ?? 3);

/* Seconds of processor time of this process's children, the ended and the living. */
function children() {
  const fields = (pid) => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').map(Number);
  const own = fields('self');
  const living = browsers.descendants().map(fields);
  return living.reduce((sum, f) => sum + f[11] + f[12], own[13] + own[14]) / 100;
}

function native(n) {
  const before = children();
  const done = spawnSync(path.join(ROOT, 'build/sconce'), ['generate', '-m', path.join(ROOT, 'models/stories15M/stories15M-4w.pte'), '-p', '',
    '--temp', '0', '-n', String(n), '--ignore-eos', '--json'], {
    env: { ...process.env, SCONCE_WEBGPU: 'dawn', VK_ICD_FILENAMES: '/usr/lib/chromium/vk_swiftshader_icd.json', SCONCE_DISABLE: 'f16' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const out = JSON.parse(done.stdout.toString().trim().split('\n').at(-1));
  return { cpu: children() - before, wall: out.new_s / out.new_tokens };
}

async function chromium(run, n) {
  const before = children();
  const result = await run((given) => window.cases.speed(given), n);
  return { cpu: children() - before, wall: result.seconds / result.newTokens, busy: result.busySeconds / result.newTokens };
}

const site = await serve({ '/': path.join(ROOT, 'web/test/pages'), '/demo/': path.join(ROOT, 'web/demo'), '/sconce/': path.join(ROOT, 'build/web/package'),
  '/models/': path.join(ROOT, 'models'), '/data/': path.join(ROOT, 'tests/data') });
/* As it is, and as native Dawn is told to: kernels' workgroup memory is not cleared for them. */
const BROWSERS = { 'Chromium            ': [], 'Chromium, no clearing': ['--enable-dawn-features=disable_workgroup_init'] };
const open = async ([name, args]) => {
  const browser = await browsers.chromium({ args });
  const { run, wait } = await browser.open(`${site.url}/`);
  await wait(() => window.ready);
  await run(() => window.cases.speed(1)); /* its kernels are compiled once */
  return { name, run };
};
const opened = [];
for (const entry of Object.entries(BROWSERS)) opened.push(await open(entry));
const ms = (seconds) => (1000 * seconds).toFixed(0).padStart(6);
for (let i = 0; i < rounds; i++) {
  const [short, long] = [native(tokens), native(2 * tokens)];
  console.log(`native Dawn            ${ms((long.cpu - short.cpu) / tokens)} ms of a processor a token, ${ms(long.wall)} ms wall`);
  for (const { name, run } of opened) {
    const [few, many] = [await chromium(run, tokens), await chromium(run, 2 * tokens)];
    console.log(`${name}  ${ms((many.cpu - few.cpu) / tokens)} ms of a processor a token, ${ms(many.wall)} ms wall; ` +
      `module, glue and WebGPU's calls ${(1000 * many.busy).toFixed(1)} ms wall`);
  }
}
process.exit(0);

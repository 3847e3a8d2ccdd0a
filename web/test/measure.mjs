/* Native Dawn and Chromium on the same SwiftShader, one after the other: node web/test/measure.mjs [TOKENS].
 * Needs `make web dawn program` and the browsers of tools/setup.sh. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { serve } from './server.mjs';
import * as browsers from './browsers.mjs';

const ROOT = path.resolve(new URL('../..', import.meta.url).pathname);
const tokens = Number(process.argv[2] ?? 48);

function native() {
  const out = execFileSync(path.join(ROOT, 'build/sconce'), ['generate', '-m', path.join(ROOT, 'models/stories15M/stories15M-4w.pte'), '-p', '',
    '--temp', '0', '-n', String(tokens), '--ignore-eos', '--json'], {
    env: { ...process.env, SCONCE_WEBGPU: 'dawn', VK_ICD_FILENAMES: '/usr/lib/chromium/vk_swiftshader_icd.json', SCONCE_DISABLE: 'f16' },
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString().trim().split('\n').map((line) => JSON.parse(line)).at(-1);
  console.log(`native Dawn  ${(out.new_tokens / out.new_s).toFixed(2)} tokens/s`);
}

async function chromium() {
  const site = await serve({ '/': path.join(ROOT, 'web/test/pages'), '/sconce/': path.join(ROOT, 'build/web/package'),
    '/models/': path.join(ROOT, 'models'), '/data/': path.join(ROOT, 'tests/data') });
  const browser = await browsers.chromium();
  const { run, wait } = await browser.open(`${site.url}/`);
  await wait(() => window.ready);
  const { result } = await run((arg) => window.cases.stories(arg), { maxNew: tokens });
  console.log(`Chromium     ${(result.newTokens / result.seconds).toFixed(2)} tokens/s; module, glue and WebGPU's calls ` +
    `${((1e6 * result.busySeconds) / result.newTokens).toFixed(0)} us a token`);
  await browser.close();
  site.close();
}

native();
await chromium();
native();
process.exit(0);

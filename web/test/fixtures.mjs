/* Case folders in Node and in browsers: tests/data/ops, and the collection SCONCE_SHARED names where there is one. A
 * sample of them, evenly spread over the families; SCONCE_WEB_CASES=all takes every one. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './browsers.mjs';

const beside = path.join(ROOT, '../shared');
export const SHARED = process.env.SCONCE_SHARED ?? (fs.existsSync(path.join(beside, 'fixtures/INDEX.tsv')) ? beside : null);

function folders(base, name = '') {
  if (fs.existsSync(path.join(base, name, 'case.json'))) return [name];
  const inside = fs.readdirSync(path.join(base, name), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return inside.flatMap((entry) => folders(base, path.join(name, entry.name)));
}

/* Every so-manieth case below what the server has at /data/ops/ and /shared/. */
function sample(stride) {
  const every = process.env.SCONCE_WEB_CASES === 'all' ? 1 : stride;
  const pick = (base, prefix, step) => folders(base).sort().filter((_, i) => i % step === 0).map((name) => `${prefix}${name}`);
  const own = pick(path.join(ROOT, 'tests/data/ops'), '/data/ops/', every);
  return SHARED ? [...own, ...pick(path.join(SHARED, 'fixtures'), '/shared/', every * 2)] : own;
}

function fileOf(address) {
  const [, prefix, rest] = /^\/(data\/ops|shared)\/(.*)$/.exec(address);
  return path.join(prefix === 'shared' ? path.join(SHARED, 'fixtures') : path.join(ROOT, 'tests/data/ops'), rest);
}

/* `run(cases)` gives [{name, wrong}]. In pieces, so that no one call takes minutes. */
export async function testCases(test, name, stride, run) {
  const cases = sample(stride);
  await test(`${name}: ${cases.length} cases of operators give what was shipped with them`, async () => {
    const wrong = [];
    for (let i = 0; i < cases.length; i += 20) wrong.push(...(await run(cases.slice(i, i + 20))));
    assert.deepEqual(wrong, []);
  });
}

export async function casesInNode(test, load) {
  const { runCases } = await import('../demo/cases.js');
  const open = async (address) => {
    const bytes = fs.readFileSync(fileOf(address));
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  };
  await testCases(test, 'node', 48, (cases) => runCases(cases, load, open));
}

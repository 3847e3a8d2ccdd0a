/* The package as others get it: packed by npm, installed into empty projects, built by Vite and by webpack, run in
 * Chromium; and its types, as TypeScript sees them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import * as browsers from './browsers.mjs';
import { serve } from './server.mjs';

const { ROOT } = browsers;
const WORK = path.join(ROOT, 'build/web/bundle');
const DEPS = path.join(ROOT, 'build/deps/bundlers');
const npm = (cwd, ...args) => execFileSync('npm', [...args, '--silent', '--offline'], { cwd, stdio: ['ignore', 'pipe', 'inherit'] }).toString().trim();

const MAIN = `import { Sconce } from 'sconce';
window.begin = async (calls) => {
  const model = await Sconce.load('/data/goldens/toy.pte', { cache: false });
  const outputs = [];
  for (const { tokens, pos } of calls) {
    const [y] = await model.run([tokens, [pos]]);
    outputs.push({ dims: y.dims, data: Array.from(y.data) });
  }
  await model.dispose();
  return outputs;
};
`;

/* An empty project with the package in it, as a person has after npm install. */
function project(name, tarball) {
  const place = path.join(WORK, name);
  fs.mkdirSync(place, { recursive: true });
  fs.writeFileSync(path.join(place, 'package.json'), '{"private": true, "type": "module"}');
  fs.writeFileSync(path.join(place, 'main.js'), MAIN);
  fs.writeFileSync(path.join(place, 'index.html'), '<!doctype html><title>t</title><script type="module" src="./main.js"></script>');
  npm(place, 'install', '--no-audit', '--no-fund', tarball);
  return place;
}

async function vite(place) {
  const { build } = await import(pathToFileURL(path.join(DEPS, 'node_modules/vite/dist/node/index.js')));
  await build({ root: place, logLevel: 'warn', configFile: false });
  return path.join(place, 'dist');
}

async function webpack(place) {
  const run = createRequire(path.join(DEPS, 'package.json'))('webpack');
  const out = path.join(place, 'dist');
  const stats = await new Promise((resolve, reject) => {
    run({ mode: 'production', context: place, entry: './main.js', output: { path: out }, performance: false }, (error, done) => (error ? reject(error) : resolve(done)));
  });
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  fs.writeFileSync(path.join(out, 'index.html'), '<!doctype html><title>t</title><script src="./main.js"></script>');
  return out;
}

/* types.ts is compiled; each of its lines that must not compile says so. */
function compileTypes(place) {
  fs.copyFileSync(path.join(ROOT, 'web/test/types.ts'), path.join(place, 'types.ts'));
  const compiler = path.join(DEPS, 'node_modules/typescript/bin/tsc');
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2022,dom'];
  try {
    execFileSync(process.execPath, [compiler, ...options, 'types.ts'], { cwd: place });
  } catch (error) {
    assert.fail(`${error.stdout}`);
  }
}

/* `check(outputs)` compares what the toy model gave for `calls`. */
export async function testBundles(test, calls, check) {
  if (!fs.existsSync(path.join(DEPS, 'done'))) return console.log('skip bundles: sh tools/setup.sh bundlers');
  fs.rmSync(WORK, { recursive: true, force: true });
  fs.mkdirSync(WORK, { recursive: true });
  const tarball = path.join(WORK, npm(path.join(ROOT, 'build/web/package'), 'pack', '--pack-destination', WORK).split('\n').at(-1));
  await test('bundle: its types are what a program uses', () => compileTypes(project('types', tarball)));
  const browser = await browsers.chromium();
  for (const [name, build] of Object.entries({ vite, webpack })) {
    await test(`bundle: installed from its tarball, built by ${name}`, async () => {
      const site = await serve({ '/': await build(project(name, tarball)), '/data/': path.join(ROOT, 'tests/data') });
      const { run, wait } = await browser.open(`${site.url}/`);
      await wait(() => window.begin);
      check(await run((list) => window.begin(list), calls));
      const asked = site.state.requests.map((r) => r.url);
      assert.ok(asked.some((url) => url.endsWith('.wasm')), `the wasm is a file of its own: ${asked}`);
      site.close();
    });
  }
  await browser.close();
}

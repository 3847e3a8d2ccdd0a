/* The page: three tabs over the package. */
import { Sconce } from './sconce/index.js';
import { runCases } from './cases.js';

const $ = (id) => document.getElementById(id);
const STORY = ['models/stories15M-4w.pte', 'models/tokenizer.bin'];
const GREEDY = 'Once upon a time'; /* the check's prompt, and what must follow */
const FOLLOWS = ', there was a little girl named Lily. She loved';
const size = (bytes) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} KB`);

/* A sentence, and a way on: `label` is a button that does `action`. */
function notice(text, label, action) {
  $('notice').hidden = !text;
  $('notice-text').textContent = text ?? '';
  $('notice-action').hidden = !label;
  $('notice-action').textContent = label ?? '';
  $('notice-action').onclick = () => {
    notice();
    action();
  };
}
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1).replace(/\.+$/, '')}.`;
/* `again`: what failed, for errors that may not come twice; `had`: a GPU was there before, and may come back. */
function explain(error, again, had) {
  if (error?.name === 'AbortError') return;
  const told = error?.message ?? String(error);
  const text = /memory/.test(error?.status) ? `${error.status}: ${told}` : told;
  const passing = again && ['I/O error', 'device lost', 'out of memory', 'out of GPU memory', 'internal error', ...(had ? ['no device'] : [])].includes(error?.status);
  notice(`${sentence(text)}${error?.advice ? `\n${error.advice}` : ''}`, passing && 'Load again', again);
}
/* From the library while it loads; of these only a full disk has something to press. */
function remark(text) {
  if (/no room/.test(text)) notice(text, 'Forget kept models', () => $('forget').click());
  else notice(text);
}

/* ---- tabs -------------------------------------------------------------------------------------- */

const tabs = [...document.querySelectorAll('[role=tab]')];
function show(tab) {
  for (const other of tabs) {
    const on = other === tab;
    other.setAttribute('aria-selected', on);
    other.tabIndex = on ? 0 : -1;
    $(other.getAttribute('aria-controls')).hidden = !on;
  }
}
for (const tab of tabs) {
  tab.onclick = () => show(tab);
  tab.onkeydown = ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    show(next);
    next.focus();
  };
}

/* ---- chat -------------------------------------------------------------------------------------- */

const chat = { model: null, messages: [], plain: true, control: null, loading: null };

/* Which of the files is what. */
function sort(files) {
  const by = (test) => files.filter((file) => test(file.name.toLowerCase()));
  const config = by((n) => n.endsWith('tokenizer_config.json'))[0];
  return {
    program: by((n) => n.endsWith('.pte'))[0],
    data: by((n) => n.endsWith('.ptd')),
    tokenizerConfig: config,
    tokenizer: by((n) => (n.endsWith('.json') || n.endsWith('.model') || n.endsWith('.bin')) && !n.endsWith('tokenizer_config.json'))[0],
  };
}

function progress(bar, about) {
  return ({ loaded, total, kernels, allKernels }) => {
    bar.value = (loaded + kernels * 2e5) / (total + allKernels * 2e5 || 1);
    about.textContent = loaded < total ? `${size(loaded)} of ${size(total)}` : `preparing the GPU: ${kernels} of ${allKernels} kernels`;
  };
}

async function load(name, files) {
  const { program, ...options } = files;
  notice();
  if (!program) return notice('None of these files is a .pte model.\nChoose the .pte file and its tokenizer together.');
  chat.loading?.abort();
  const control = (chat.loading = new AbortController());
  const busy = (on) => {
    $('progress').hidden = $('cancel').hidden = !on;
    $('story').hidden = $('pick').hidden = on;
  };
  busy(true);
  $('model-name').textContent = name;
  try {
    await chat.model?.dispose();
    chat.model = null;
    ready(false);
    const started = performance.now();
    chat.model = await Sconce.load(program, { ...options, signal: control.signal, onProgress: progress($('progress'), $('model-about')), onNotice: remark });
    const about = chat.model.about;
    chat.plain = !about.tokenizer?.chatTemplate;
    $('model-about').textContent = `${size(about.size)}, ready in ${((performance.now() - started) / 1000).toFixed(1)} s${about.device.software ? ', on a software device' : ''}`;
    if (!about.tokenizer) notice('This model came without a tokenizer, so it cannot chat.\nChoose its tokenizer together with it, or use the Run tab.');
    chat.model.lost.then(({ message }) => {
      ready(false);
      notice(`${sentence(`The GPU was lost: ${message || 'no reason given'}`)}\nThe model has to be loaded again; what you wrote stays here.`, 'Load again', () => load(name, files));
    });
    if (name !== chat.name) restart();
    chat.name = name;
    $('story').classList.remove('main');
    ready(!!about.tokenizer);
    $('prompt').placeholder = chat.plain ? 'Once upon a time' : 'Write a message';
    $('prompt').focus();
  } catch (error) {
    $('model-name').textContent = 'No model yet';
    $('model-about').textContent = 'Everything runs on this device. Nothing you write leaves it.';
    explain(error, () => load(name, files), !!chat.name);
  } finally {
    busy(false);
    showKept();
  }
}

function ready(on) {
  for (const id of ['prompt', 'send', 'clear']) $(id).disabled = !on;
}
function restart() {
  chat.messages = [];
  $('messages').replaceChildren();
  $('speed').textContent = '';
  $('copy').disabled = true;
}
function bubble(role, text) {
  const item = document.createElement('li');
  item.className = role;
  item.textContent = text;
  $('messages').append(item);
  item.scrollIntoView({ block: 'end' });
  return item;
}

function options() {
  const number = (id) => Number($(id).value);
  return { temperature: number('temperature'), topP: number('top-p'), maxNew: number('max-new'), seed: Math.max(0, Math.floor(number('seed'))) };
}
function begin(text, signal) {
  if (chat.plain) return chat.model.generate(text, { ...options(), signal });
  const system = $('system').value.trim();
  const messages = [...(system ? [{ role: 'system', content: system }] : []), ...chat.messages, { role: 'user', content: text }];
  return chat.model.chat(messages, { ...options(), signal });
}

function whereTimeGoes({ newTokens, seconds, busySeconds }) {
  const ms = (s) => (1000 * s / newTokens).toFixed(1);
  return newTokens ? `, ${ms(busySeconds)} ms of each in the module and in WebGPU's calls, ${ms(seconds - busySeconds)} for the GPU` : '';
}

async function ask(text) {
  notice();
  bubble('user', text);
  const item = bubble('assistant busy', chat.plain ? text : '');
  const control = (chat.control = new AbortController());
  $('send').hidden = true;
  $('stop').hidden = false;
  let answer = '';
  let count = 0;
  let first = 0;
  let away = document.hidden;
  const watch = () => (away ||= document.hidden);
  document.addEventListener('visibilitychange', watch);
  try {
    const generation = begin(text, control.signal);
    for await (const part of generation) {
      answer += part.text;
      count++;
      first ||= performance.now();
      item.textContent = (chat.plain ? text : '') + answer;
      if (count > 1) $('speed').textContent = `${((count - 1) / ((performance.now() - first) / 1000)).toFixed(1)} tokens/s`;
      if ($('messages').scrollHeight - $('messages').scrollTop - $('messages').clientHeight < 120) item.scrollIntoView({ block: 'end' });
    }
    const r = generation.result;
    $('speed').textContent = `${r.newTokens} tokens, ${(r.newTokens / r.seconds).toFixed(1)} tokens/s${whereTimeGoes(r)}; prompt of ${r.promptTokens} (${r.reusedTokens} kept) in ${r.promptSeconds.toFixed(2)} s${away ? '; slower while the tab was in the background' : ''}`;
  } catch (error) {
    if (error.status !== 'device lost') explain(error); /* model.lost says that, with a way on */
  } finally {
    document.removeEventListener('visibilitychange', watch);
    item.classList.remove('busy');
    chat.messages.push({ role: 'user', content: text }, { role: 'assistant', content: answer });
    $('send').hidden = false;
    $('stop').hidden = true;
    $('copy').disabled = false;
    $('prompt').focus();
  }
}

$('ask').onsubmit = (event) => {
  event.preventDefault();
  const text = $('prompt').value.trim() || (chat.plain ? $('prompt').placeholder : '');
  if (!text || $('send').hidden || $('send').disabled) return;
  $('prompt').value = '';
  ask(text);
};
$('prompt').onkeydown = (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $('ask').requestSubmit();
  }
};
document.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') chat.control?.abort();
});
$('stop').onclick = () => chat.control?.abort();
$('cancel').onclick = () => chat.loading?.abort();
$('clear').onclick = async () => {
  chat.control?.abort();
  await chat.model.reset().catch(explain);
  restart();
};
async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = before), 1200);
}
$('copy').onclick = () => copy($('copy'), [...$('messages').children].map((item) => item.textContent).join('\n\n')).catch(explain);
$('settings-button').onclick = () => {
  $('settings').hidden = !$('settings').hidden;
  $('settings-button').setAttribute('aria-expanded', !$('settings').hidden);
};
$('story').onclick = () => load('stories15M', { program: STORY[0], tokenizer: STORY[1] });
$('pick').onclick = () => $('files').click();
$('files').onchange = () => {
  const files = [...$('files').files];
  const sorted = sort(files);
  load(sorted.program?.name ?? '', sorted);
};

async function showKept() {
  const list = await Sconce.kept().catch(() => []);
  const bytes = list.reduce((sum, entry) => sum + entry.kept, 0);
  $('kept').textContent = list.length ? `${list.length} model file${list.length > 1 ? 's' : ''} kept on this device, ${size(bytes)}` : 'No model files are kept on this device';
  $('forget').disabled = !list.length;
}
$('forget').onclick = async () => {
  await Sconce.forget();
  showKept();
};

for (const type of ['dragover', 'dragleave', 'drop'])
  document.addEventListener(type, (event) => {
    event.preventDefault();
    $('drop').hidden = type !== 'dragover';
    if (type !== 'drop') return;
    const sorted = sort([...event.dataTransfer.files]);
    if ($('run').hidden) load(sorted.program?.name ?? '', sorted);
    else loadRun(sorted);
  });

/* ---- run --------------------------------------------------------------------------------------- */

let runner = null;

async function loadRun(files) {
  const { program, ...options } = files;
  notice();
  if (!program) return notice('None of these files is a .pte model.');
  $('run-progress').hidden = false;
  try {
    await runner?.dispose();
    runner = await Sconce.load(program, { ...options, onProgress: progress($('run-progress'), $('run-about')), onNotice: remark });
    runner.lost.then(({ message }) => notice(sentence(`The GPU was lost: ${message || 'no reason given'}`), 'Load again', () => loadRun(files)));
    $('run-name').textContent = program.name;
    $('method').replaceChildren(...Object.keys(runner.methods).map((name) => new Option(name)));
    if (runner.methods.forward) $('method').value = 'forward';
    $('outputs').replaceChildren();
    $('run-form').hidden = false;
    $('run-pick').classList.remove('main');
    await chooseMethod();
    $('run-about').textContent = `${size(runner.about.size)}, ${Object.keys(runner.methods).length === 1 ? 'one method' : `${Object.keys(runner.methods).length} methods`}`;
  } catch (error) {
    explain(error, () => loadRun(files));
  } finally {
    $('run-progress').hidden = true;
  }
}
async function chooseMethod() {
  const method = await runner.open($('method').value);
  $('inputs').replaceChildren(...method.inputs.map((input, i) => {
    const label = document.createElement('label');
    label.textContent = `input ${i}: ${input.dtype} [${input.dims}]${input.dynamic ? ', or smaller' : ''}`;
    const field = document.createElement('input');
    field.placeholder = 'zeros, ones, random, or numbers: 1 2 3';
    field.value = /int/.test(input.dtype) ? 'zeros' : 'random';
    field.oninput = () => (field.picture = null);
    label.append(field);
    if (takesPicture(input)) label.append(chooser(field, input, i));
    return label;
  }));
}
function values(text, input) {
  const count = input.dims.reduce((a, b) => a * b, 1);
  const make = { zeros: () => 0, ones: () => 1, random: () => Math.random() }[text.trim()];
  if (make) return { data: Array.from({ length: count }, make), dims: input.dims };
  const words = text.trim().split(/[\s,]+/);
  const wrong = words.find((word) => word !== 'NaN' && Number.isNaN(Number(word)));
  if (wrong !== undefined) throw new Error(`'${wrong}' is no number. Write numbers, or zeros, ones, random`);
  return words.map(Number);
}

/* ---- pictures ---- */

/* Three planes, from 0 to 1: what most models of pictures take. */
const takesPicture = ({ dtype, dims }) => dtype === 'float32' && dims.at(-3) === 3 && dims.length === (dims[0] === 1 ? 4 : 3);

/* In the size that the input has; where that may be smaller, in the picture's own. */
async function pixels(file, { dims, dynamic }) {
  const bitmap = await createImageBitmap(file);
  const [most, widest] = dims.slice(-2);
  const [h, w] = dynamic ? [Math.min(most, bitmap.height), Math.min(widest, bitmap.width)] : [most, widest];
  const canvas = Object.assign(document.createElement('canvas'), { width: w, height: h });
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0, w, h);
  const { data } = context.getImageData(0, 0, w, h);
  const planes = Float32Array.from({ length: 3 * w * h }, (_, i) => data[4 * (i % (w * h)) + Math.floor(i / (w * h))] / 255);
  return { data: planes, dims: [...dims.slice(0, -2), h, w] };
}
function chooser(field, input, i) {
  const file = Object.assign(document.createElement('input'), { type: 'file', accept: 'image/*', className: 'picture' });
  file.setAttribute('aria-label', `A picture for input ${i}`);
  file.onchange = async () => {
    try {
      field.picture = await pixels(file.files[0], input);
      field.value = file.files[0].name;
    } catch (error) {
      notice(`That picture cannot be read: ${error.message}`);
    }
  };
  return file;
}

/* Where one suits: the last two dims, in colour where there are three of them, at most 2048 a side. */
function picture({ dims, data }) {
  const [h, w] = dims.slice(-2);
  if (!(w > 1 && h > 1 && w <= 2048 && h <= 2048)) return null;
  const planes = dims.at(-3) === 3 ? 3 : 1;
  const n = planes * w * h;
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < n; i++) {
    const v = Number(data[i]);
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (planes === 3 && low >= 0 && high <= 1) [low, high] = [0, 1];
  const canvas = Object.assign(document.createElement('canvas'), { width: w, height: h });
  canvas.style.width = `${Math.min(480, w * Math.max(1, Math.floor(240 / w)))}px`;
  const image = new ImageData(w, h);
  for (let i = 0; i < 4 * w * h; i++) {
    const plane = planes === 3 ? i % 4 : 0;
    image.data[i] = i % 4 === 3 ? 255 : ((Number(data[plane * w * h + (i >> 2)]) - low) / (high - low || 1)) * 255;
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}
function tensor(y, i) {
  const box = document.createElement('div');
  box.className = 'tensor';
  box.innerHTML = '<strong></strong><code></code>';
  box.firstChild.textContent = `output ${i}: ${y.dtype} [${y.dims}]`;
  const first = Array.from(y.data.slice(0, 64), (v) => (typeof v === 'bigint' || Number.isInteger(v) ? String(v) : v.toPrecision(6)));
  const row = y.dims.at(-1) > 1 && y.dims.at(-1) <= 10 ? y.dims.at(-1) : 64;
  const rows = Array.from({ length: Math.ceil(first.length / row) }, (_, i) => first.slice(i * row, (i + 1) * row).join('  '));
  box.lastChild.textContent = rows.join('\n') + (y.data.length > 64 ? '  …' : '');
  const canvas = picture(y);
  if (canvas) box.append(canvas);
  return box;
}
$('run-pick').onclick = () => $('run-files').click();
$('run-files').onchange = () => loadRun(sort([...$('run-files').files]));
$('method').onchange = () => chooseMethod().catch(explain);
$('run-form').onsubmit = async (event) => {
  event.preventDefault();
  notice();
  try {
    const method = runner.methods[$('method').value];
    const fields = [...$('inputs').querySelectorAll('label > input:first-of-type')];
    const started = performance.now();
    const outputs = await runner.run(fields.map((field, i) => field.picture ?? values(field.value, method.inputs[i])), { method: $('method').value });
    $('run-time').textContent = `${(performance.now() - started).toFixed(1)} ms`;
    $('outputs').replaceChildren(...outputs.map(tensor));
  } catch (error) {
    explain(error);
  }
};

/* ---- check ------------------------------------------------------------------------------------- */

$('check-start').onclick = async () => {
  notice();
  $('check-start').disabled = true;
  const about = $('check-about').textContent;
  const lines = [];
  const say = (line) => {
    lines.push(line);
    $('report').textContent = lines.join('\n');
  };
  try {
    say(`browser      ${navigator.userAgent}`);
    const found = await Sconce.check();
    if (!found.ok) {
      say(`WebGPU       no: ${found.reason}`);
      say(`             ${found.advice}`);
      return;
    }
    say(`GPU          ${Object.values(found.adapter).filter(Boolean).join(', ') || 'the browser does not say'}`);
    say(`features     ${found.features.join(' ')}`);
    for (const [name, value] of Object.entries(found.limits)) say(`limit        ${name} ${value}`);
    const room = await navigator.storage?.estimate?.();
    if (room) say(`storage      ${size(room.quota - room.usage)} free of ${size(room.quota)}`);
    const cases = (await (await fetch('cases/index.json')).json()).map((name) => `cases/${name}`);
    const open = async (address) => (await fetch(address)).arrayBuffer();
    const wrong = await runCases(cases, (program) => Sconce.load(program, { worker: false }), open,
      (name) => ($('check-about').textContent = `Computing ${name.slice(6)}`));
    say(`operators    ${wrong.length ? `WRONG: ${wrong.length} of ${cases.length} cases` : `right, all ${cases.length} cases`}`);
    for (const one of wrong) say(`             ${one.name.slice(6)}: ${one.wrong}`);
    say('model        loading stories15M');
    const started = performance.now();
    const model = await Sconce.load(STORY[0], { tokenizer: STORY[1] });
    say(`loaded       ${((performance.now() - started) / 1000).toFixed(1)} s`);
    const { f16, subgroups, subgroupMin, subgroupMax } = model.device;
    say(`in use       f16 ${f16 ? 'yes' : 'no'}, subgroups ${subgroups ? `${subgroupMin}–${subgroupMax}` : 'no'}`);
    const generation = model.generate(GREEDY, { maxNew: 12 });
    const text = await generation.text();
    say(`tokens       ${text === FOLLOWS ? 'right, all 12' : `WRONG: '${text}', expected '${FOLLOWS}'`}`);
    const { newTokens, seconds, promptSeconds } = generation.result;
    say(`speed        ${(newTokens / seconds).toFixed(1)} tokens/s${whereTimeGoes(generation.result)}; prompt ${(promptSeconds * 1000).toFixed(0)} ms`);
    await model.dispose();
  } catch (error) {
    say(`failed       ${error.status ? `${error.status}: ` : ''}${error.message}`);
    if (error.advice) say(`             ${error.advice}`);
  } finally {
    $('check-about').textContent = about;
    $('check-start').disabled = false;
    $('check-copy').disabled = false;
  }
};
$('check-copy').onclick = () => copy($('check-copy'), $('report').textContent).catch(explain);

/* ---- start ------------------------------------------------------------------------------------- */

navigator.serviceWorker?.register('sw.js').catch(() => {});
showKept();
Sconce.check().then((found) => {
  if (!found.ok) {
    $('story').disabled = $('pick').disabled = true;
    notice(`${sentence(found.reason)}\n${found.advice}`);
  }
});

/* Where a file's bytes come from: memory, a Blob or File, a file handle, or a URL.
 *
 * A source has a size and reads ranges; nothing is ever held as a whole. A URL is read in blocks by
 * range requests, and every block is kept in the origin's private file system under its SHA-256, so
 * that a second load needs no network, one that was broken off goes on where it was, and a block
 * that was damaged is fetched again. A connection that breaks is tried again from the byte it reached. */
import { SconceError, aborted, badArgument } from './error.js';

export const BLOCK = 4 << 20;

/* Node's and Deno's, which have no page; written so that bundlers do not look for it. */
export const disk = () => import(/* @vite-ignore */ /* webpackIgnore: true */ `${'node:'}fs/promises`);
const HAS_DISK = !!globalThis.process?.versions?.node && !globalThis.document;
const isAddress = (text) => /^[a-z][a-z0-9+.-]+:/i.test(text); /* C:\\ is none */

/* A worker knows no page: addresses must be whole. Where there is no page, what is none is a path. */
export function whole(from) {
  if (typeof from !== 'string' && !(from instanceof URL)) return from;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  if (!base && !isAddress(String(from))) return from;
  try {
    return new URL(from, base).href;
  } catch (error) {
    throw badArgument(`'${from}' is no address: ${error.message}`);
  }
}

export async function openSource(from, options = {}) {
  if (from instanceof ArrayBuffer) return new MemorySource(new Uint8Array(from));
  if (ArrayBuffer.isView(from)) return new MemorySource(new Uint8Array(from.buffer, from.byteOffset, from.byteLength));
  if (typeof Blob !== 'undefined' && from instanceof Blob) return new BlobSource(from);
  if (typeof from?.getFile === 'function') return new BlobSource(await from.getFile());
  if (typeof from !== 'string' && !(from instanceof URL))
    throw badArgument('a file is a URL, a File, a Blob, an ArrayBuffer or a file handle');
  const place = whole(from);
  const path = !isAddress(place) ? place : HAS_DISK && /^file:/i.test(place) ? new URL(place) : null;
  return path ? DiskSource.open(path) : openUrl(new URL(place), options);
}

class DiskSource {
  static async open(path) {
    const source = new DiskSource();
    source.path = path;
    try {
      source.file = await (await disk()).open(path);
      source.size = (await source.file.stat()).size;
      return source;
    } catch (error) {
      await source.close();
      throw new SconceError('I/O error', `cannot open ${path}: ${error.message}`, { advice: 'Check the path.' });
    }
  }
  async read(offset, size) {
    const bytes = new Uint8Array(size);
    let got = 0;
    try {
      for (let n = 1; got < size && n; got += n) n = (await this.file.read(bytes, got, size - got, offset + got)).bytesRead;
    } catch (error) {
      throw new SconceError('I/O error', `cannot read ${this.path}: ${error.message}`);
    }
    return bytes.subarray(0, got);
  }
  async close() {
    await this.file?.close().catch(() => {});
  }
}

class MemorySource {
  constructor(bytes) {
    this.bytes = bytes;
    this.size = bytes.length;
  }
  async read(offset, size) {
    return this.bytes.subarray(offset, offset + size);
  }
}

class BlobSource {
  constructor(blob) {
    this.blob = blob;
    this.size = blob.size;
  }
  async read(offset, size) {
    try {
      return new Uint8Array(await this.blob.slice(offset, offset + size).arrayBuffer());
    } catch (error) {
      throw new SconceError('I/O error', `cannot read ${this.blob.name ?? 'the file'}: ${error.message}`, {
        advice: 'The file was moved or changed since it was chosen: choose it again.',
      });
    }
  }
}

/* ---- URLs ---- */

const TRIES = 5; /* of a request that the network broke off, each after twice the time of the last */
const FIRST_WAIT = 250; /* milliseconds */

function broken(url, error, signal) {
  if (signal?.aborted) return aborted(signal);
  return new SconceError('I/O error', `cannot fetch ${url}: ${error.message}`, { cause: error });
}

/* A server that is busy is asked again. */
export async function get(url, headers, signal) {
  let response;
  try {
    response = await fetch(url, { headers, signal });
  } catch (error) {
    throw Object.assign(broken(url, error, signal), { again: true });
  }
  if (response.ok) return response;
  await response.body?.cancel();
  const error = new SconceError('I/O error', `${url}: the server says ${response.status} ${response.statusText}`);
  throw Object.assign(error, { again: response.status === 429 || response.status >= 500 });
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(aborted(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
/* `work` may go on where it was, since it is the same function that is called again. */
async function patiently(work, signal, tries = TRIES) {
  for (let i = 1; ; i++) {
    try {
      return await work();
    } catch (error) {
      if (!error.again || signal?.aborted || i === tries) throw error;
    }
    await pause(FIRST_WAIT * 2 ** (i - 1), signal);
  }
}

const tagOf = (response) => response.headers.get('ETag') ?? response.headers.get('Last-Modified') ?? '';

/* Another origin's server shows a page its Content-Range only if it says so, the Content-Length of a whole file always:
 * which is that of what was sent, so the last byte must be where it says. */
async function lengthOf(url, signal) {
  try {
    const size = Number((await fetch(url, { method: 'HEAD', signal })).headers.get('Content-Length'));
    const end = await get(url, { Range: `bytes=${size - 1}-${size}` }, signal);
    return end.status === 206 && (await end.arrayBuffer()).byteLength === 1 ? size : NaN;
  } catch {
    return NaN;
  }
}

async function openUrl(url, { signal, cache = true, onNotice }) {
  const store = cache ? await openStore(url) : null;
  const blob = async (response) => new BlobSource(await response.blob().catch((error) => Promise.reject(broken(url, error, signal))));
  let head;
  try {
    head = await patiently(() => get(url, { Range: 'bytes=0-0' }, signal), signal, store?.meta.tag ? 1 : TRIES);
  } catch (error) {
    if (store?.meta.tag && !signal?.aborted) return new UrlSource(url, store, store.meta, onNotice);
    throw error;
  }
  if (head.status !== 206) return blob(head);
  await head.body?.cancel();
  let size = Number(/\/(\d+)$/.exec(head.headers.get('Content-Range') ?? '')?.[1]);
  if (!Number.isSafeInteger(size)) size = await lengthOf(url, signal);
  if (!Number.isSafeInteger(size)) return blob(await get(url, {}, signal));
  const about = { url: url.href, size, tag: tagOf(head) };
  const fresh = about.tag ? store : null; /* nothing tells a file that was kept from a newer one */
  await fresh?.begin(about);
  return new UrlSource(url, fresh, about, onNotice);
}

class UrlSource {
  constructor(url, store, { size, tag }, onNotice) {
    Object.assign(this, { url, store, size, tag, onNotice });
    this.held = new Map(); /* a block, and the next one on its way */
  }

  async read(offset, size, signal) {
    const first = Math.floor(offset / BLOCK);
    const last = Math.floor((offset + size - 1) / BLOCK);
    if (first === last) {
      const block = await this.block(first, signal);
      return block.subarray(offset - first * BLOCK, offset - first * BLOCK + size);
    }
    const out = new Uint8Array(size);
    for (let i = first; i <= last; i++) {
      const block = await this.block(i, signal);
      const from = Math.max(0, offset - i * BLOCK);
      const to = Math.min(block.length, offset + size - i * BLOCK);
      out.set(block.subarray(from, to), i * BLOCK + from - offset);
    }
    return out;
  }

  block(i, signal) {
    const promise = this.ask(i, signal);
    if ((i + 1) * BLOCK < this.size) this.ask(i + 1, signal).catch(() => {}); /* who needs it will hear of it */
    for (const key of this.held.keys()) if (key !== i && key !== i + 1) this.held.delete(key);
    return promise;
  }
  ask(i, signal) {
    if (!this.held.has(i)) {
      const promise = this.load(i, signal);
      this.held.set(i, promise);
      promise.catch(() => this.held.delete(i));
    }
    return this.held.get(i);
  }

  async load(i, signal) {
    const size = Math.min(BLOCK, this.size - i * BLOCK);
    const kept = await this.store?.get(i, size);
    if (kept) return kept;
    const block = { bytes: new Uint8Array(size), got: 0 };
    await patiently(() => this.fetchRest(i * BLOCK, block, signal), signal);
    if (this.store) await this.keep(i, block.bytes);
    return block.bytes;
  }
  /* What a block lacks still; what has arrived stays when the connection breaks. */
  async fetchRest(start, block, signal) {
    const response = await get(this.url, { Range: `bytes=${start + block.got}-${start + block.bytes.length - 1}` }, signal);
    if (response.status !== 206 || tagOf(response) !== this.tag) {
      await response.body?.cancel();
      throw new SconceError('I/O error', `${this.url} has changed on the server while it was read`, { advice: 'Load the model again.' });
    }
    const reader = response.body.getReader();
    try {
      for (let part; !(part = await reader.read()).done; block.got += part.value.length) block.bytes.set(part.value, block.got);
    } catch (error) {
      throw Object.assign(broken(this.url, error, signal), { again: !(error instanceof RangeError) });
    }
    if (block.got < block.bytes.length)
      throw Object.assign(new SconceError('I/O error', `${this.url}: the server stopped at ${start + block.got} of ${this.size} bytes`), { again: true });
  }
  async keep(i, bytes) {
    try {
      await this.store.put(i, bytes);
    } catch (error) {
      if (!this.store) return; /* it was said already */
      this.store = null;
      const full = error?.name === 'QuotaExceededError';
      this.onNotice?.(full
        ? 'There is no room to keep this model: it works now and will be fetched again next time. Free some disk space, or clear the kept models.'
        : `The model cannot be kept: ${error?.message}`);
    }
  }
}

/* ---- the store ---- */

const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, '0')).join('');
const sha256 = async (bytes) => hex(await crypto.subtle.digest('SHA-256', bytes));

async function folder(create) {
  const root = await globalThis.navigator?.storage?.getDirectory?.();
  return root?.getDirectoryHandle('sconce', { create });
}

async function openStore(url) {
  try {
    const name = await sha256(new TextEncoder().encode(url.href));
    const place = await (await folder(true))?.getDirectoryHandle(name, { create: true });
    if (!place) return null;
    const store = new Store(place);
    await store.open();
    return store;
  } catch {
    return null; /* private windows and old browsers have none: everything works without */
  }
}

/* One file a block, with the block's SHA-256 behind its bytes, and meta.json: url, size, tag, block. */
const HASH = 32;
class Store {
  constructor(place) {
    this.place = place;
    this.meta = {};
  }
  async open() {
    try {
      this.meta = JSON.parse(new TextDecoder().decode(await this.file('meta.json')));
    } catch {
      this.meta = {};
    }
  }
  /* What was kept of another version of the file is of no use. */
  async begin({ url, size, tag }) {
    if (this.meta.size === size && this.meta.tag === tag && this.meta.block === BLOCK + HASH) return;
    for await (const name of this.place.keys()) await this.place.removeEntry(name).catch(() => {});
    this.meta = { url, size, tag, block: BLOCK + HASH };
    await this.write('meta.json', [new TextEncoder().encode(JSON.stringify(this.meta))]).catch(() => {});
  }
  async file(name) {
    const file = await (await this.place.getFileHandle(name)).getFile();
    return file.arrayBuffer();
  }
  async write(name, parts) {
    const handle = await this.place.getFileHandle(name, { create: true });
    if (handle.createWritable) {
      const stream = await handle.createWritable();
      try {
        for (const part of parts) await stream.write(part);
      } catch (error) {
        await stream.abort().catch(() => {});
        throw error;
      }
      return stream.close();
    }
    const access = await handle.createSyncAccessHandle();
    try {
      access.truncate(0);
      let at = 0;
      for (const part of parts) at += access.write(part, { at });
    } finally {
      access.close();
    }
  }
  /* null: not there, or damaged. */
  async get(i, size) {
    const file = await this.file(String(i)).catch(() => null);
    if (file?.byteLength !== size + HASH) return null;
    const bytes = new Uint8Array(file, 0, size);
    return hex(new Uint8Array(file, size)) === (await sha256(bytes)) ? bytes : null;
  }
  async put(i, bytes) {
    await this.write(String(i), [bytes, await crypto.subtle.digest('SHA-256', bytes)]);
  }
  /* Bytes that are kept. */
  async sum() {
    let all = 0;
    for await (const [name, child] of this.place.entries()) if (name !== 'meta.json') all += Math.max(0, (await child.getFile()).size - HASH);
    return all;
  }
}

/* What is kept: [{url, size, kept}] in bytes. */
export async function kept() {
  const out = [];
  const place = await folder(false).catch(() => null);
  if (!place) return out;
  for await (const child of place.values()) {
    const store = new Store(child);
    await store.open();
    if (store.meta.url) out.push({ url: store.meta.url, size: store.meta.size, kept: await store.sum() });
  }
  return out;
}

export async function forget(url) {
  const place = await folder(false).catch(() => null);
  if (!place) return;
  if (url) return place.removeEntry(await sha256(new TextEncoder().encode(new URL(url, globalThis.location?.href).href)), { recursive: true }).catch(() => {});
  for await (const name of place.keys()) await place.removeEntry(name, { recursive: true });
}

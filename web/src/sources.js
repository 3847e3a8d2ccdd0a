/* Where a file's bytes come from: memory, a Blob or File, a file handle, or a URL.
 *
 * A source has a size and reads ranges; nothing is ever held as a whole. A URL is read in blocks by
 * range requests, and every block is kept in the origin's private file system under its SHA-256, so
 * that a second load needs no network, one that was broken off goes on where it was, and a block
 * that was damaged is fetched again. */
import { SconceError, aborted } from './error.js';

export const BLOCK = 4 << 20;

export async function openSource(from, options = {}) {
  if (from instanceof ArrayBuffer) return new MemorySource(new Uint8Array(from));
  if (ArrayBuffer.isView(from)) return new MemorySource(new Uint8Array(from.buffer, from.byteOffset, from.byteLength));
  if (typeof Blob !== 'undefined' && from instanceof Blob) return new BlobSource(from);
  if (typeof from?.getFile === 'function') return new BlobSource(await from.getFile());
  if (typeof from === 'string' || from instanceof URL) return openUrl(new URL(from, globalThis.location?.href), options);
  throw new SconceError('bad argument', 'a file is a URL, a File, a Blob, an ArrayBuffer or a file handle');
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

/* ---- URLs ------------------------------------------------------------------------------------ */

async function get(url, headers, signal) {
  let response;
  try {
    response = await fetch(url, { headers, signal });
  } catch (error) {
    if (signal?.aborted) throw aborted(signal);
    throw new SconceError('I/O error', `cannot fetch ${url}: ${error.message}`);
  }
  if (!response.ok) throw new SconceError('I/O error', `${url}: the server says ${response.status} ${response.statusText}`);
  return response;
}

async function openUrl(url, { signal, cache = true, onNotice }) {
  const store = cache ? await openStore(url) : null;
  let head;
  try {
    head = await get(url, { Range: 'bytes=0-0' }, signal);
  } catch (error) {
    if (store?.meta.size && !signal?.aborted) return new UrlSource(url, store, store.meta.size, { signal, onNotice });
    throw error;
  }
  const tag = head.headers.get('ETag') ?? head.headers.get('Last-Modified') ?? '';
  if (head.status !== 206) return new BlobSource(await head.blob()); /* the browser decides where it lies */
  await head.arrayBuffer();
  const size = Number(/\/(\d+)$/.exec(head.headers.get('Content-Range') ?? '')?.[1]);
  if (!Number.isSafeInteger(size)) throw new SconceError('I/O error', `${url}: the server does not say how long the file is`);
  await store?.begin(url.href, size, tag);
  return new UrlSource(url, store, size, { signal, onNotice });
}

class UrlSource {
  constructor(url, store, size, { signal, onNotice }) {
    Object.assign(this, { url, store, size, signal, onNotice });
    this.held = new Map(); /* a few blocks, and the next one on its way */
  }

  async read(offset, size) {
    const first = Math.floor(offset / BLOCK);
    const last = Math.floor((offset + size - 1) / BLOCK);
    if (first === last) {
      const block = await this.block(first);
      return block.subarray(offset - first * BLOCK, offset - first * BLOCK + size);
    }
    const out = new Uint8Array(size);
    for (let i = first; i <= last; i++) {
      const block = await this.block(i);
      const from = Math.max(0, offset - i * BLOCK);
      const to = Math.min(block.length, offset + size - i * BLOCK);
      out.set(block.subarray(from, to), i * BLOCK + from - offset);
    }
    return out;
  }

  block(i) {
    const promise = this.ask(i);
    if ((i + 1) * BLOCK < this.size) this.ask(i + 1).catch(() => {}); /* who needs it will hear of it */
    for (const key of this.held.keys()) if (key !== i && key !== i + 1) this.held.delete(key);
    return promise;
  }
  ask(i) {
    if (!this.held.has(i)) {
      const promise = this.load(i);
      this.held.set(i, promise);
      promise.catch(() => this.held.delete(i));
    }
    return this.held.get(i);
  }

  async load(i) {
    const kept = await this.store?.get(i);
    if (kept) return kept;
    const from = i * BLOCK;
    const size = Math.min(BLOCK, this.size - from);
    const response = await get(this.url, { Range: `bytes=${from}-${from + size - 1}` }, this.signal);
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (response.status !== 206 || bytes.length !== size)
      throw new SconceError('I/O error', `${this.url}: asked for ${size} bytes at ${from}, got ${bytes.length}`);
    if (this.store) await this.keep(i, bytes);
    return bytes;
  }
  async keep(i, bytes) {
    try {
      await this.store.put(i, bytes);
    } catch (error) {
      this.store = null;
      const full = error?.name === 'QuotaExceededError';
      this.onNotice?.(full
        ? 'There is no room to keep this model: it works now and will be fetched again next time. Free some disk space, or clear the kept models.'
        : `The model cannot be kept: ${error?.message}`);
    }
  }
}

/* ---- the store ------------------------------------------------------------------------------- */

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

/* One file a block, and meta.json: url, size, tag and the blocks' hashes. */
class Store {
  constructor(place) {
    this.place = place;
    this.meta = { hashes: [] };
  }
  async open() {
    try {
      this.meta = JSON.parse(new TextDecoder().decode(await this.file('meta.json')));
    } catch {
      this.meta = { hashes: [] };
    }
  }
  /* What was kept of another version of the file is of no use. */
  async begin(url, size, tag) {
    if (this.meta.size === size && this.meta.tag === tag && this.meta.block === BLOCK) return;
    this.meta = { url, size, tag, block: BLOCK, hashes: [] };
    await this.write('meta.json', new TextEncoder().encode(JSON.stringify(this.meta))).catch(() => {});
  }
  async file(name) {
    const file = await (await this.place.getFileHandle(name)).getFile();
    return file.arrayBuffer();
  }
  async write(name, bytes) {
    const handle = await this.place.getFileHandle(name, { create: true });
    if (handle.createWritable) {
      const stream = await handle.createWritable();
      try {
        await stream.write(bytes);
      } catch (error) {
        await stream.abort().catch(() => {});
        throw error;
      }
      return stream.close();
    }
    const access = await handle.createSyncAccessHandle();
    try {
      access.truncate(0);
      access.write(bytes, { at: 0 });
    } finally {
      access.close();
    }
  }
  async get(i) {
    const hash = this.meta.hashes[i];
    if (!hash) return null;
    try {
      const bytes = new Uint8Array(await this.file(String(i)));
      if ((await sha256(bytes)) === hash) return bytes;
    } catch {
      /* gone: fetch it again */
    }
    this.meta.hashes[i] = null;
    return null;
  }
  async put(i, bytes) {
    await this.write(String(i), bytes);
    this.meta.hashes[i] = await sha256(bytes);
    await this.write('meta.json', new TextEncoder().encode(JSON.stringify(this.meta)));
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
    if (store.meta.url)
      out.push({ url: store.meta.url, size: store.meta.size, kept: Math.min(store.meta.size, store.meta.hashes.filter(Boolean).length * BLOCK) });
  }
  return out;
}

export async function forget(url) {
  const place = await folder(false).catch(() => null);
  if (!place) return;
  if (url) return place.removeEntry(await sha256(new TextEncoder().encode(new URL(url, globalThis.location?.href).href)), { recursive: true }).catch(() => {});
  for await (const name of place.keys()) await place.removeEntry(name, { recursive: true });
}

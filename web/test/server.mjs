/* A static server for tests: range requests, and a list of what was asked for. Its state makes it behave as bad networks
 * and servers do: `ranges` false answers with whole files, `cutAt` [n, bytes] breaks the next n answers of .pte and .ptd
 * files off behind so many bytes, `busy` n answers so many requests with 503, `version` changes every tag, `gone` is a pattern
 * of what is not there, `shared` lets pages of other origins read, without what they must be shown by name: Content-Range and
 * ETag; `dated` says when a file was changed, `heads` false knows no HEAD. `told` is what a page posted. */
import http from 'node:http';
import fs from 'node:fs';
import path from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.css': 'text/css',
  '.json': 'application/json', '.webmanifest': 'application/manifest+json', '.svg': 'image/svg+xml', '.png': 'image/png' };

/* roots: {'/prefix/': folder}, the longest prefix wins. */
export async function serve(roots) {
  const state = { requests: [], ranges: true, cutAt: [0, 0], busy: 0, version: 1, gone: null, shared: false, dated: false, heads: true, told: null };
  const server = http.createServer((request, response) => {
    const url = decodeURIComponent(new URL(request.url, 'http://x').pathname);
    const prefix = Object.keys(roots).filter((p) => url.startsWith(p)).sort((a, b) => b.length - a.length)[0];
    const base = path.resolve(roots[prefix]);
    let file = path.join(base, url.slice(prefix.length) || 'index.html');
    if (request.method === 'POST') return take(request, response);
    state.requests.push({ url, range: request.headers.range ?? null, method: request.method });
    if (state.shared) response.setHeader('Access-Control-Allow-Origin', '*');
    if (state.gone?.test(url) || (request.method === 'HEAD' && !state.heads) || !file.startsWith(base) || !fs.existsSync(file) || fs.statSync(file).isDirectory()) {
      response.writeHead(404);
      return response.end();
    }
    const model = /\.p(te|td)$/.test(url);
    if (model && state.busy-- > 0) {
      response.writeHead(503);
      return response.end();
    }
    const { size, mtimeMs } = fs.statSync(file);
    const head = { 'Content-Type': TYPES[path.extname(file)] ?? 'application/octet-stream', ETag: `"${size}-${mtimeMs}-${state.version}"`, 'Cache-Control': 'no-store' };
    if (state.dated) head['Last-Modified'] = new Date(mtimeMs + 1000 * state.version).toUTCString();
    if (request.method === 'HEAD') {
      response.writeHead(200, { ...head, 'Content-Length': size });
      return response.end();
    }
    const range = state.ranges && /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    if (!range) {
      response.writeHead(200, { ...head, 'Content-Length': size });
      return fs.createReadStream(file).pipe(response);
    }
    const from = Number(range[1]);
    const to = Math.min(size - 1, range[2] === '' ? size - 1 : Number(range[2]));
    response.writeHead(206, { ...head, 'Content-Length': to - from + 1, 'Content-Range': `bytes ${from}-${to}/${size}` });
    if (model && to - from >= state.cutAt[1] && state.cutAt[0]-- > 0) {
      const part = fs.createReadStream(file, { start: from, end: from + state.cutAt[1] - 1 });
      return part.on('end', () => setTimeout(() => request.socket.destroy(), 50)).pipe(response, { end: false });
    }
    fs.createReadStream(file, { start: from, end: to }).pipe(response);
  });
  async function take(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    state.told = JSON.parse(Buffer.concat(parts).toString());
    response.writeHead(204);
    response.end();
  }
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, state, close: () => server.close() };
}

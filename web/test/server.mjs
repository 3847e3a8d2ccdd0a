/* A static server for tests: range requests, and counts of what was asked for. `slow` and `broken`
 * make it behave as bad networks do. */
import http from 'node:http';
import fs from 'node:fs';
import path from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm', '.css': 'text/css',
  '.json': 'application/json', '.webmanifest': 'application/manifest+json', '.svg': 'image/svg+xml', '.png': 'image/png' };

/* roots: {'/prefix/': folder}, the longest prefix wins. */
export async function serve(roots) {
  const state = { requests: [], ranges: true, failAfter: Infinity };
  const server = http.createServer((request, response) => {
    const url = decodeURIComponent(new URL(request.url, 'http://x').pathname);
    const prefix = Object.keys(roots).filter((p) => url.startsWith(p)).sort((a, b) => b.length - a.length)[0];
    const base = path.resolve(roots[prefix]);
    let file = path.join(base, url.slice(prefix.length) || 'index.html');
    state.requests.push({ url, range: request.headers.range ?? null });
    if (!file.startsWith(base) || !fs.existsSync(file) || fs.statSync(file).isDirectory()) {
      response.writeHead(404);
      return response.end();
    }
    if (state.failAfter-- <= 0) return request.socket.destroy();
    const { size, mtimeMs } = fs.statSync(file);
    const head = { 'Content-Type': TYPES[path.extname(file)] ?? 'application/octet-stream', ETag: `"${size}-${mtimeMs}"`, 'Cache-Control': 'no-store' };
    const range = state.ranges && /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    if (!range) {
      response.writeHead(200, { ...head, 'Content-Length': size });
      return fs.createReadStream(file).pipe(response);
    }
    const from = Number(range[1]);
    const to = Math.min(size - 1, range[2] === '' ? size - 1 : Number(range[2]));
    response.writeHead(206, { ...head, 'Content-Length': to - from + 1, 'Content-Range': `bytes ${from}-${to}/${size}` });
    fs.createReadStream(file, { start: from, end: to }).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, state, close: () => server.close() };
}

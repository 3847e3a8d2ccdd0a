/* Keeps the page and the package, so that the demo opens without a network. The network comes
 * first: a new version shows at once. Models are kept elsewhere, in blocks (see sources.js). */
const NAME = 'sconce-page';

self.addEventListener('install', (event) => {
  const files = ['./', 'style.css', 'app.js', 'cases.js', 'icon.svg', 'app.webmanifest', ...['index', 'engine', 'glue', 'layout', 'sources', 'error', 'worker']
    .map((name) => `sconce/${name}.js`), 'sconce/sconce.wasm', 'models/tokenizer.bin'];
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(files)).then(() => self.skipWaiting()));
});
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || request.headers.has('Range') || new URL(request.url).origin !== location.origin) return;
  event.respondWith(fetch(request).then(async (response) => {
    if (response.ok) await (await caches.open(NAME)).put(request, response.clone());
    return response;
  }).catch(async (error) => {
    const kept = await caches.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }));
});

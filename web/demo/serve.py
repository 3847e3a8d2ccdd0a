#!/usr/bin/env python3
"""Serves a folder on localhost, with range requests, and prints the address. usage: serve.py FOLDER [PORT]"""

import functools
import http.server
import os
import re
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript", ".wasm": "application/wasm",
                      ".webmanifest": "application/manifest+json"}

    def send_head(self):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if not wanted or not os.path.isfile(path):
            return super().send_head()
        size = os.path.getsize(path)
        first = int(wanted.group(1))
        last = min(size - 1, int(wanted.group(2) or size - 1))
        if first > last:
            self.send_error(416)
            return None
        file = open(path, "rb")
        file.seek(first)
        self.left = last - first + 1
        self.send_response(206)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(self.left))
        self.send_header("Last-Modified", self.date_time_string(os.path.getmtime(path)))
        self.end_headers()
        return file

    def copyfile(self, source, output):
        left = getattr(self, "left", None)
        self.left = None
        while chunk := source.read(min(1 << 20, left) if left is not None else 1 << 20):
            output.write(chunk)
            left = left - len(chunk) if left is not None else None

    def log_message(self, *args):
        pass


port = int(sys.argv[2]) if len(sys.argv) > 2 else 8642
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=sys.argv[1]))
print(f"http://localhost:{server.server_port}/  (Ctrl-C ends it)", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    pass

# SPDX-License-Identifier: Apache-2.0
"""A small PyPI (PEP 503) over TLS and a small npm registry, both made of packages that are built here."""

import base64
import hashlib
import http.server
import io
import json
import ssl
import subprocess
import tarfile
import threading
import zipfile


def tgz(top, files):
    """The bytes of a .tar.gz with these files in one folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo("%s/%s" % (top, name))
            info.size, info.mode, info.mtime = len(text.encode()), 0o644, 1700000000
            t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def wheel(name, version, code, requires=(), script=None):
    """PEP 427: a pure wheel with one module, and a console script when asked for."""
    info = "%s-%s.dist-info" % (name, version)
    files = {"%s.py" % name: code,
             info + "/METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s" % (
                 name, version, "".join("Requires-Dist: %s\n" % r for r in requires)),
             info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    if script:
        files[info + "/entry_points.txt"] = "[console_scripts]\n%s = %s:main\n" % (script, name)
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append("%s,sha256=%s,%d\n" % (path, digest, len(text.encode())))
    files[info + "/RECORD"] = "".join(rows) + info + "/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
    return "%s-%s-py3-none-any.whl" % (name, version), out.getvalue()


def sdist(name, version, setup, files):
    top = "%s-%s" % (name, version)
    info = "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version)
    return top + ".tar.gz", tgz(top, {"setup.py": setup, "PKG-INFO": info, **files})


class Server:
    """HTTP, or HTTPS with a certificate (PEM with its key), on a loopback port of its own."""

    def __init__(self, pages, certificate=None):
        """pages: path -> (content type, bytes); asked: the paths that were."""
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.asked.append(self.path)
                kind, body = pages.get(self.path.split("?")[0], (None, b"not here"))
                self.send_response(200 if kind else 404)
                self.send_header("Content-Type", kind or "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):  # npm's audit
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_error(404)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def certificate(folder, name):
    """A self-signed one for a name: (the certificate, the same with its key)."""
    cert, key, both = ("%s/%s.%s" % (folder, name, e) for e in ("crt", "key", "pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=DNS:" + name, "-keyout", key, "-out", cert], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(both, "w") as out:
        for part in (cert, key):
            with open(part) as f:
                out.write(f.read())
    return cert, both


def pypi(packages):
    """Pages of an index with these files: [(file name, bytes)]."""
    pages, of = {}, {}
    for name, data in packages:
        of.setdefault(name.split("-")[0].replace("_", "-"), []).append((name, data))
        pages["/files/" + name] = ("application/octet-stream", data)
    for project, files in of.items():
        links = "".join('<a href="/files/%s#sha256=%s">%s</a>\n' % (n, hashlib.sha256(d).hexdigest(), n) for n, d in files)
        pages["/simple/%s/" % project] = ("text/html", ("<!DOCTYPE html><html><body>%s</body></html>" % links).encode())
    return pages


def npm(url, packages):
    """Pages of a registry at url: {name: {version: (package.json as a dict, other files)}}."""
    pages = {}
    for name, versions in packages.items():
        told = {}
        for version, (meta, files) in versions.items():
            meta = {"name": name, "version": version, **meta}
            data = tgz("package", {"package.json": json.dumps(meta), **files})
            path = "/%s/-/%s-%s.tgz" % (name, name.split("/")[-1], version)
            pages[path] = ("application/octet-stream", data)
            digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
            told[version] = {**meta, "hasInstallScript": "scripts" in meta, "dist": {
                "tarball": url + path, "integrity": "sha512-" + digest, "shasum": hashlib.sha1(data).hexdigest()}}
        page = {"name": name, "dist-tags": {"latest": max(told)}, "versions": told}
        for path in (name, name.replace("/", "%2f")):
            pages["/" + path] = ("application/json", json.dumps(page).encode())
    return pages

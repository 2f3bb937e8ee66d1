# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium by WebDriver (W3C), without a library: what the tests of the HTML report need."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request


class Browser:
    """with Browser() as b: b.open(path); b.run("return document.title")"""

    def __init__(self, dark=False, size=(1300, 900)):
        self.dark, self.size = dark, size

    @staticmethod
    def missing():
        """The program that is not there, or None."""
        for name in ("chromium", "chromedriver"):
            if not shutil.which(name):
                return name
        return None

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="warder-chromium-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.base = "http://127.0.0.1:%d" % port
        self.driver = subprocess.Popen(["chromedriver", "--port=%d" % port], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=%d,%d" % self.size,
                "--user-data-dir=" + self.profile]
        if self.dark:
            args.append("--force-dark-mode")
        options = {"binary": shutil.which("chromium"), "args": args}
        caps = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        for _ in range(200):
            try:
                if self.call("GET", "/status")["ready"]:
                    break
            except OSError:
                time.sleep(0.1)
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": caps}})
        self.session = "/session/" + made["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", self.session)
        except (OSError, AttributeError):
            pass
        # the driver and all of its browser are one process group
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        req = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(req, timeout=120) as r:
            return json.load(r)["value"]

    def open(self, path, fragment=""):
        self.call("POST", self.session + "/url", {"url": "file://" + path + fragment})

    def run(self, script, *args):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(args)})

    def press(self, key):
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "k", "actions": keys}]})

    def type(self, text):
        for c in text:
            self.press(c)

    def screenshot(self):
        """PNG bytes of what is in the window."""
        return base64.b64decode(self.call("GET", self.session + "/screenshot"))

    def print(self):
        """PDF bytes."""
        return base64.b64decode(self.call("POST", self.session + "/print", {}))

    def log(self, kind):
        return self.call("POST", self.session + "/se/log", {"type": kind})

    def requests(self):
        """Addresses that the pages asked for, but those of files and the browser's own first page."""
        out = []
        for row in self.log("performance"):
            msg = json.loads(row["message"])["message"]
            if msg["method"] == "Network.requestWillBeSent":
                url = msg["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "chrome:", "chrome-untrusted:", "about:")):
                    out.append(url)
        return out

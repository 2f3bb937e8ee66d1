# SPDX-License-Identifier: Apache-2.0
"""The agent's HTTP API: every answer is what openapi.json says, who asks is who the kernel says, and what hostile
clients, dead ones and a killed agent leave is nothing."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()

try:
    import jsonschema
except ImportError:
    raise unittest.SkipTest("python3-jsonschema is not installed (make deps)")

with open(os.path.join(SRC, "userspace/api/openapi.json")) as f:
    OPENAPI = json.load(f)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("warder", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


def resolve(schema):
    return OPENAPI["components"][schema["$ref"].split("/")[2]][schema["$ref"].split("/")[3]] if "$ref" in schema else schema


def check_schema(value, schema):
    whole = dict(schema, components=OPENAPI["components"])
    jsonschema.validate(value, whole, cls=jsonschema.Draft202012Validator)


def operation(method, target):
    """The operation of a request, by openapi.json alone."""
    parts = [urllib.parse.unquote(p) for p in target.partition("?")[0].split("/")]
    for path, item in OPENAPI["paths"].items():
        want = path.split("/")
        if len(want) == len(parts) and all(w == p or w.startswith("{") for w, p in zip(want, parts)):
            return item.get(method.lower())
    return None


def check_answer(method, target, answer):
    """Status, type and body are among those that openapi.json names."""
    op = operation(method, target)
    error = OPENAPI["components"]["responses"]["Error"]
    response = resolve(op["responses"].get(str(answer.status), error)) if op else error
    if answer.status >= 300 and op:
        assert str(answer.status) in op["responses"] or answer.status in (405, 408, 415, 431), (target, answer.status)
    content = response.get("content", {})
    if not content:
        assert answer.body == b"", answer.body
        return
    kind = answer.headers["Content-Type"]
    schema = content[kind].get("schema")
    if kind == "application/json":
        check_schema(answer.json, schema)
    elif kind == "application/x-ndjson":
        for line in answer.lines:
            check_schema(line, schema)
    elif kind == "text/event-stream":
        for block in answer.body.decode().split("\n\n")[:-1]:
            event, data = block.split("\n")
            assert event.startswith("event: ") and data.startswith("data: "), block
            check_schema(json.loads(data[6:]), schema)


class ApiCase(AgentCase):
    @property
    def socket_path(self):
        return os.path.join(self.env["WARDER_RUN"], "api.sock")

    def call(self, method, target, body=None, headers=None, check=True):
        c = Connection(self.socket_path)
        headers = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        c.request(method, target, body, headers)
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        c.close()
        if check:
            check_answer(method, target, answer)
        return answer

    def ok(self, method, target, body=None, status=200, **kw):
        answer = self.call(method, target, body, **kw)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def fails(self, status, method, target, body=None, word="", **kw):
        answer = self.call(method, target, body, **kw)
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.json["code"], status)
        self.assertIn(word, answer.json["message"])
        return answer

    def box(self, **body):
        return self.ok("POST", "/v1/sandboxes", body, 201).json["sandboxID"]

    def run_in(self, box, cmd, **more):
        return self.ok("POST", "/v1/sandboxes/%s/commands" % box, dict({"cmd": cmd}, **more)).json


def files(box, path, more="", **query):
    return "/v1/sandboxes/%s/files%s?%s" % (box, more, urllib.parse.urlencode(dict({"path": path}, **query)))


class Description(ApiCase):
    def test_routes_and_description_are_the_same(self):
        with open(os.path.join(SRC, "userspace/api/route.c")) as f:
            text = f.read()
        text = text.replace('BOX "', '"/v1/sandboxes/{sandboxID}').replace("= BOX,", '= "/v1/sandboxes/{sandboxID}",')
        rows = {}
        for row in re.split(r"\{ \.method", text)[1:]:
            method, path = re.match(r' = "([A-Z]+)",\s*\.path = "([^"]+)"', row).groups()
            query = re.search(r"\.query = \{([^}]*)\}", row)
            body = re.search(r"BODY_[A-Z]+", row)
            rows[method, path] = (set(re.findall(r'"([^"]+)"', query.group(1))) if query else set(),
                                  body.group(0) if body else None)
        described = {}
        for path, item in OPENAPI["paths"].items():
            for method, op in item.items():
                query = {p["name"] for p in op.get("parameters", []) if p["in"] == "query"}
                content = op.get("requestBody", {}).get("content", {})
                described[method.upper(), path] = (query, "BODY_JSON" if "application/json" in content
                                                   else "BODY_RAW" if content else None)
        self.assertEqual(rows, described)
        self.assertGreater(len(rows), 15)

    def test_schemas_are_sound(self):
        ids = [op["operationId"] for item in OPENAPI["paths"].values() for op in item.values()]
        self.assertEqual(len(ids), len(set(ids)))
        text = json.dumps(OPENAPI)
        for kind, parts in OPENAPI["components"].items():
            for name, part in parts.items():
                self.assertIn('#/components/%s/%s"' % (kind, name), text)
                if kind == "schemas":
                    jsonschema.Draft202012Validator.check_schema(part)
        for ref in re.findall(r'"\$ref": "#/components/([a-z]+)/([A-Za-z]+)"', text):
            self.assertIn(ref[1], OPENAPI["components"][ref[0]])

    def test_bodies_know_the_members_that_are_described(self):
        with open(os.path.join(SRC, "userspace/api/body.c")) as f:
            text = f.read()
        for table, schema in (("CREATE", "NewSandbox"), ("COMMAND", "Command"), ("SNAPSHOT", "NewSnapshot")):
            rows = re.search(r"field %s\[\] = \{(.*?)\{ 0 \}" % table, text, re.S).group(1)
            self.assertEqual(set(re.findall(r'\{ "([^"]+)"', rows)), set(OPENAPI["components"]["schemas"][schema]["properties"]))


class Sandboxes(ApiCase):
    def test_life(self):
        self.start()
        self.assertEqual(self.ok("GET", "/openapi.json").json, OPENAPI)
        version = self.ok("GET", "/v1/version").json["version"]
        self.assertIn(version, self.warder("version").out.decode())
        self.assertEqual(self.ok("GET", "/v1/sandboxes").json, [])
        made = self.ok("POST", "/v1/sandboxes", {
            "name": "box", "timeout": 600, "memoryMB": 64, "pids": 32, "cpus": 0.5, "diskMB": 20,
            "metadata": {"user": 'x"y', "app": "a&b"}, "envs": {"A": "b c"}, "cwd": "/tmp"}, 201).json
        box = made["sandboxID"]
        self.assertEqual((made["name"], made["state"], made["memoryMB"], made["pids"], made["cpus"], made["diskMB"]),
                         ("box", "running", 64, 32, 0.5, 20))
        self.assertEqual(made["metadata"], {"user": 'x"y', "app": "a&b"})
        self.assertGreater(made["endAt"], made["startedAt"])
        other = self.box()
        self.assertEqual([b["sandboxID"] for b in self.ok("GET", "/v1/sandboxes").json], [box, other])
        self.assertEqual(self.run_in("box", "echo $A $PWD")["stdout"], "b c /tmp\n")
        # By what was said of it, by state; by id, part of it, name.
        query = urllib.parse.urlencode({"metadata": urllib.parse.urlencode({"app": "a&b", "user": 'x"y'})})
        self.assertEqual([b["sandboxID"] for b in self.ok("GET", "/v1/sandboxes?" + query).json], [box])
        self.assertEqual(self.ok("GET", "/v1/sandboxes?metadata=app%3Dno").json, [])
        for word in (box, box[-6:], "box"):
            self.assertEqual(self.ok("GET", "/v1/sandboxes/" + word).json["sandboxID"], box)
        self.ok("POST", "/v1/sandboxes/box/pause", status=204)
        wait_for("frozen", lambda: self.ok("GET", "/v1/sandboxes/box").json["state"] == "paused")
        self.assertEqual([b["sandboxID"] for b in self.ok("GET", "/v1/sandboxes?state=paused,held").json], [box])
        self.fails(409, "POST", "/v1/sandboxes/box/pause", word="frozen already")
        self.ok("POST", "/v1/sandboxes/box/resume", status=204)
        self.fails(409, "POST", "/v1/sandboxes/box/resume", word="not frozen")
        self.ok("DELETE", "/v1/sandboxes/box", status=204)
        self.fails(404, "DELETE", "/v1/sandboxes/box", word="no running sandbox")
        self.assertEqual([r["session"] for r in self.ps()], [other])
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)

    def test_network_and_a_policy_that_has_its_own_time(self):
        self.start()
        box = self.box(network={"allowOut": ["db.example:5432"]})
        self.assertEqual(self.run_in(box, "getent hosts db.example | cut -c1-7")["stdout"], "198.18.\n")
        self.assertIsNone(self.ok("GET", "/v1/sandboxes/" + self.box(policy="strict")).json["endAt"])
        end = self.ok("GET", "/v1/sandboxes/" + self.box()).json
        self.assertIsNotNone(end["endAt"])
        self.assertIsNone(self.ok("GET", "/v1/sandboxes/" + self.box(timeout=0)).json["endAt"])

    def test_timeout_ends_it(self):
        self.start()
        box = self.box(timeout=1)
        self.wait_sealed(box)
        stop = [e for e in self.events(box) if e["kind"] == "session.stop"]
        self.assertEqual(stop[0]["run"]["reason"], "ttl")

    def test_refusals(self):
        self.start()
        for body, word in (({"nam": "x"}, "'nam': unknown member"), ({"timeout": -1}, "'timeout'"), ({"timeout": 1 << 40}, "timeout"),
                           ({"memoryMB": 0}, "memory"), ({"policy": "nothing"}, "nothing"), ({"metadata": {"": "x"}}, "metadata"),
                           ({"metadata": {"a": 1}}, "'metadata': expected a string"), ({"name": "a\0b"}, "NUL"),
                           ({"metadata": {"a": "x" * 3000}}, "metadata"), ({"envs": ["x"]}, "'envs'"), ({"cpus": "1"}, "cpus"),
                           ({"network": {"mode": "wide"}}, "wide"), ({"network": {"allowOut": ["a b"]}}, "a b"),
                           ({"allowInternetAccess": True, "network": {"mode": "none"}}, "contradict"),
                           ({"command": ["x"] * 600}, "too many")):
            with self.subTest(body):
                self.fails(400, "POST", "/v1/sandboxes", body, word)
        self.fails(422, "POST", "/v1/sandboxes", {"command": ["/nothing"]}, "not found")
        json_type = {"Content-Type": "application/json"}
        for text in ("{", "[]", '{"name":"a","name":"b"}', "{}x", '{"name":"\ud800"}', '{"timeout":1.5}', "[" * 60000):
            with self.subTest(text[:20]):
                self.fails(400, "POST", "/v1/sandboxes", text.encode("utf-8", "surrogatepass"), headers=json_type)
        self.fails(415, "POST", "/v1/sandboxes", "a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.fails(404, "GET", "/v1/nothing")
        self.fails(404, "GET", "/")
        answer = self.fails(405, "PUT", "/v1/sandboxes")
        self.assertEqual(answer.headers["Allow"], "POST, GET")
        for target in ("/v1/sandboxes?stat=x", "/v1/sandboxes?state=odd", "/v1/sandboxes?state=held&state=held", "/v1/sandboxes?=",
                       "/v1/sandboxes/", "/v1//sandboxes", "/v1/sandboxes/%00", "/v1/sandboxes/%2e%2e", "/v1/sandboxes/a%2fb",
                       "/v1/sandboxes/%zz", "/v1/sandboxes/%ff", "/v1/sandboxes/%4", "/" + "a/" * 20):
            with self.subTest(target):
                answer = self.call("GET", target, check=False)
                self.assertEqual(answer.status, 400)
                check_schema(answer.json, OPENAPI["components"]["schemas"]["Error"])
        self.fails(404, "GET", "/v1/sandboxes/nobody", word="nobody")
        self.fails(400, "GET", "/v1/sandboxes", "body", word="no body")
        self.assertEqual(self.ps(), [])

    def test_quota(self):
        self.start("queue: 0\nquota: { sandboxes: 1, memory: 256M }\n")
        box = self.box(memoryMB=64)
        answer = self.fails(429, "POST", "/v1/sandboxes", {"memoryMB": 64}, "sandboxes in use")
        self.assertEqual(answer.headers["Retry-After"], "1")
        self.fails(400, "POST", "/v1/sandboxes", {"memoryMB": 512}, "never")
        self.ok("DELETE", "/v1/sandboxes/" + box, status=204)
        self.box(memoryMB=64)


class Commands(ApiCase):
    def test_results(self):
        self.start()
        box = self.box(name="box")
        r = self.run_in(box, "cat; echo out; echo err >&2; echo $A $PWD; exit 3", stdin="in ", envs={"A": "b"}, cwd="/tmp")
        self.assertEqual((r["exitCode"], r["reason"], r["stdout"], r["stderr"]), (3, "exit", "in out\nb /tmp\n", "err\n"))
        r = self.run_in(box, "kill -TERM $$")
        self.assertEqual((r["exitCode"], r["reason"], r["signal"]), (143, "signal", 15))
        for argv, code in ((["/nothing"], 127), (["/etc/passwd"], 126)):
            r = self.ok("POST", "/v1/sandboxes/box/commands", {"args": argv}).json
            self.assertEqual((r["exitCode"], r["reason"]), (code, "not_started"))
            self.assertTrue(r["error"])
        r = self.run_in(box, r"printf '\377\303\244'")
        self.assertEqual(r["stdout"], "\ufffdä")
        r = self.run_in(box, r"printf '\377\303\244'", encoding="base64")
        self.assertEqual((r["stdout"], r["encoding"]), ("/8Ok", "base64"))
        r = self.run_in(box, "head -c 3000000 /dev/zero | tr '\\0' x", maxOutput=1000)
        self.assertEqual((r["stdout"], r["stdoutBytes"], r["stdoutTruncated"], r["stderrTruncated"]),
                         ("x" * 1000, 3000000, True, False))
        # A timeout kills, its whole process group, and says so.
        r = self.run_in(box, "sleep 1000 & echo begun; sleep 1000", timeout=1)
        self.assertEqual((r["exitCode"], r["reason"], r["stdout"]), (124, "timeout", "begun\n"))
        self.assertEqual(self.run_in(box, "ps -e -o comm= | grep -c sleep")["stdout"], "0\n")
        self.fails(404, "POST", "/v1/sandboxes/nobody/commands", {"cmd": "true"})
        for body in ({}, {"cmd": "a", "args": ["b"]}, {"args": []}, {"cmd": "a", "encoding": "utf-16"},
                     {"cmd": "a", "maxOutput": 1 << 40}, {"cmd": "a", "timeout": 1 << 40}, {"cmd": "x" * 60000, "stdin": "y" * 6000}):
            self.fails(413 if len(json.dumps(body)) > 65536 else 400, "POST", "/v1/sandboxes/box/commands", body)
        # Too long for a message to the sandbox, but not for us.
        self.fails(400, "POST", "/v1/sandboxes/box/commands", {"args": ["x"] * 300 + ["y" * 50000]}, "too long")

    def test_streams(self):
        self.start()
        box = self.box()
        target = "/v1/sandboxes/%s/commands?stream=true" % box
        c = Connection(self.socket_path)
        c.request("POST", target, json.dumps({"cmd": r"echo one; cat; printf '\303'; read x < fifo; printf '\244'; echo err >&2; exit 4"}),
                  {"Content-Type": "application/json"})
        # The fifo is made by another command while this one runs: what was written comes at once.
        r = c.getresponse()
        self.assertEqual(r.status, 200)
        self.assertEqual(json.loads(r.readline()), {"type": "start"})
        self.assertEqual(json.loads(r.readline()), {"type": "stdout", "data": "one\n"})
        r.read()
        c.close()
        self.run_in(box, "mkfifo fifo")
        c.request("POST", target, json.dumps({"cmd": r"printf 'a\303'; read x < fifo; printf '\244'; exit 4"}),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        self.assertEqual([json.loads(r.readline()) for _ in range(2)], [{"type": "start"}, {"type": "stdout", "data": "a"}])
        self.run_in(box, "echo go > fifo")
        self.assertEqual([json.loads(line) for line in r.read().splitlines()],
                         [{"type": "stdout", "data": "ä"}, {"type": "end", "exitCode": 4, "reason": "exit"}])
        c.close()
        for accept in ("application/x-ndjson", "text/event-stream"):
            answer = self.ok("POST", "/v1/sandboxes/%s/commands" % box, {"cmd": "echo x; echo y >&2"}, headers={"Accept": accept})
            self.assertEqual(answer.headers["Content-Type"], accept)
            self.assertIn(b'"exitCode":0', answer.body)
        answer = self.ok("POST", target, {"args": ["/nothing"]})
        self.assertEqual(answer.lines[-1]["exitCode"], 127)
        self.fails(404, "POST", "/v1/sandboxes/nobody/commands?stream=true", {"cmd": "x"})
        n = sum(len(m["data"]) for m in self.ok("POST", target, {"cmd": "head -c 3000000 /dev/zero | tr '\\0' x"}).lines
                if m["type"] == "stdout")
        self.assertEqual(n, 3000000)

    def test_background(self):
        self.start()
        box = self.box()
        answer = self.ok("POST", "/v1/sandboxes/%s/commands" % box, {"cmd": "echo begun; sleep 1000", "background": True}, 202)
        self.assertEqual(answer.json, {"background": True})
        wait_for("its output in the logs", lambda: b"begun" in self.ok("GET", "/v1/sandboxes/%s/logs" % box).body)
        self.assertEqual(self.run_in(box, "ps -e -o comm= | grep -c sleep")["stdout"], "1\n")

    def test_the_sandbox_ends_in_the_middle(self):
        self.start()
        box = self.box()
        r = self.run_in(box, "unshare -m true; sleep 1000")
        self.assertEqual((r["exitCode"], r["reason"], r["sandboxEnded"]), (137, "rule", True))
        self.wait_sealed(box)
        box = self.box()
        lines = self.ok("POST", "/v1/sandboxes/%s/commands?stream=true" % box, {"cmd": "echo x; unshare -m true; sleep 1000"}).lines
        self.assertEqual((lines[-1]["type"], lines[-1]["reason"], lines[-1]["sandboxEnded"]), ("end", "rule", True))

    def test_a_client_that_goes_away_hangs_up(self):
        self.start()
        box = self.box()
        for query in ("", "?stream=true"):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.socket_path)
            body = json.dumps({"cmd": "touch up; exec sleep 1000"})
            s.sendall(("POST /v1/sandboxes/%s/commands%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       "Content-Length: %d\r\n\r\n%s" % (box, query, len(body), body)).encode())
            wait_for("its command", lambda: self.run_in(box, "ps -e -o comm= | grep -c sleep; rm up")["exitCode"] == 0)
            s.close()
            wait_for("its end", lambda: self.run_in(box, "ps -e -o comm= | grep -c sleep")["stdout"] == "0\n")


class Snapshots(ApiCase):
    def test_kept_listed_begun_with_and_removed(self):
        self.start()
        self.assertEqual(self.ok("GET", "/v1/snapshots").json, [])
        box = self.box(name="box")
        self.run_in(box, "echo kept > f; chmod 640 f; echo t > /tmp/t")
        row = self.ok("POST", "/v1/sandboxes/box/snapshots", {"name": "first"}, 201).json
        self.assertEqual((row["snapshotID"], row["tenant"], row["sandboxID"], row["sandboxName"]), ("first", "default", box, "box"))
        self.run_in(box, "echo later > f")  # it goes on
        self.assertEqual(self.ok("GET", "/v1/snapshots").json, [row])
        again = self.box(name="again", snapshot="first")
        self.assertEqual(self.run_in(again, "cat f /tmp/t; stat -c %a f")["stdout"], "kept\nt\n640\n")
        for session, kind in ((box, "session.snapshot"), (again, "session.restore")):
            told = wait_for("the event", lambda: [e for e in self.events(session) if e["kind"] == kind])
            self.assertEqual([e["snapshot"]["sha256"] for e in told], [row["sha256"]])
        self.ok("DELETE", "/v1/snapshots/first", status=204)
        self.assertEqual(self.ok("GET", "/v1/snapshots").json, [])
        self.fails(404, "DELETE", "/v1/snapshots/first", word="no snapshot 'first'")

    def test_refusals(self):
        self.start()
        self.box(name="box")
        target = "/v1/sandboxes/box/snapshots"
        for body, word in (({}, "'name' is needed"), ({"name": "../x"}, "letters"), ({"name": ""}, "letters"),
                           ({"name": "a", "to": "b"}, "'to': unknown member")):
            self.fails(400, "POST", target, body, word)
        self.fails(404, "POST", "/v1/sandboxes/nobody/snapshots", {"name": "a"}, "no running sandbox")
        self.ok("POST", target, {"name": "a"}, 201)
        self.fails(409, "POST", target, {"name": "a"}, "there already")
        self.fails(422, "POST", "/v1/sandboxes", {"snapshot": "b"}, "no snapshot 'b'")
        self.fails(405, "GET", target)
        self.assertEqual([r["snapshotID"] for r in self.ok("GET", "/v1/snapshots").json], ["a"])
        self.assertEqual(len(self.ps()), 1)

    def test_a_full_disk(self):
        os.mkdir(self.path("state"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24M", "warder-test", self.path("state")], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("state")], check=True)
        self.start()
        box = self.box()
        self.run_in(box, "head -c 40M /dev/urandom > f")
        self.fails(507, "POST", "/v1/sandboxes/%s/snapshots" % box, {"name": "a"}, "No space left")
        self.assertEqual(self.ok("GET", "/v1/snapshots").json, [])
        self.assertEqual(self.run_in(box, "echo on")["stdout"], "on\n")


class Files(ApiCase):
    def setUp(self):
        super().setUp()
        self.start()
        self.name = self.box(name="box", diskMB=16)

    def test_bytes(self):
        data = os.urandom(3 << 20)
        for path in ("f", "deep/er/f x%&+ä", "/tmp/abs", "-rf"):
            with self.subTest(path):
                answer = self.ok("PUT", files("box", path), data, 201)
                self.assertEqual(answer.json, {"path": path, "size": len(data)})
                answer = self.ok("GET", files("box", path))
                self.assertEqual(answer.body, data)
                self.assertEqual(self.ok("GET", files("box", path, "/stat")).json["size"], len(data))
                self.ok("DELETE", files("box", path), status=204)
                self.fails(404, "GET", files("box", path))
        self.ok("PUT", files("box", "x.sh", mode="755"), b"#!/bin/sh\necho ran\n", 201)
        self.assertEqual(self.run_in("box", "./x.sh")["stdout"], "ran\n")
        self.ok("PUT", files("box", "x.sh"), b"#!/bin/sh\necho again\n", 201)  # its mode stays
        self.assertEqual(self.run_in("box", "./x.sh")["stdout"], "again\n")
        self.ok("PUT", files("box", "empty"), b"", 201)
        self.assertEqual(self.ok("GET", files("box", "empty")).body, b"")
        self.run_in("box", "ln -s target link; echo old > target")
        self.ok("PUT", files("box", "link"), b"new", 201)
        self.assertEqual(self.run_in("box", "cat target; readlink link")["stdout"], "newtarget\n")
        # In pieces of an unknown sum.
        self.call("PUT", files("box", "pieces"), iter([b"a" * 70000, b"b"]))
        self.assertEqual(self.ok("GET", files("box", "pieces")).body, b"a" * 70000 + b"b")

    def test_lists(self):
        self.run_in("box", "mkdir -p d/e; echo x > d/f; ln -s f d/l; mkfifo d/p; printf x > \"d/e/new\nline\"; chmod 640 d/f")
        answer = self.ok("GET", files("box", "d", "/list")).json
        entries = {e["name"]: e for e in answer["entries"]}
        self.assertEqual({n: e["type"] for n, e in entries.items()}, {"e": "dir", "f": "file", "l": "symlink", "p": "other"})
        self.assertEqual((entries["f"]["size"], entries["f"]["mode"], entries["f"]["permissions"], entries["f"]["path"]),
                         (2, 0o640, "rw-r-----", "d/f"))
        self.assertEqual(entries["l"]["symlinkTarget"], "f")
        self.assertFalse(answer["truncated"])
        deep = self.ok("GET", files("box", "d", "/list", depth=2)).json["entries"]
        self.assertIn("d/e/new\nline", [e["path"] for e in deep])
        self.assertEqual(self.ok("GET", files("box", "/workspace/d/l", "/stat")).json["type"], "symlink")
        self.assertEqual(self.ok("POST", files("box", "m/n", "/dir"), status=201).json, {"created": True})
        self.assertEqual(self.ok("POST", files("box", "m/n", "/dir")).json, {"created": False})
        self.ok("DELETE", files("box", "m"), status=204)
        answer = self.ok("GET", files("box", "/usr", "/list", depth=16)).json
        self.assertEqual((len(answer["entries"]), answer["truncated"]), (10000, True))

    def test_refusals(self):
        self.run_in("box", "mkfifo p; echo x > secret; chmod 0 secret; mkdir d")
        for status, method, path, more in ((404, "GET", "no", ""), (409, "GET", "d", ""), (409, "GET", "p", ""), (403, "GET", "secret", ""),
                                           (409, "PUT", "d", ""), (403, "PUT", "/etc/x", ""), (403, "PUT", "/usr/x", ""),
                                           (404, "DELETE", "no", ""), (409, "GET", "secret", "/list"), (404, "GET", "no", "/list"),
                                           (404, "GET", "no", "/stat"), (409, "POST", "secret", "/dir"), (400, "GET", "", ""),
                                           (400, "GET", "x" * 5000, "")):
            with self.subTest((method, path[:10], more)):
                self.fails(status, method, files("box", path, more), b"x" if method == "PUT" else None)
        self.fails(400, "PUT", files("box", "x", mode="rwx"), b"x")
        self.fails(400, "GET", files("box", "d", "/list", depth=0))
        self.fails(400, "GET", files("box", "d", "/list", depth=17))
        self.fails(400, "GET", "/v1/sandboxes/box/files")
        self.fails(404, "PUT", files("nobody", "x"), b"x" * 100000)
        # The disk is full: an error, and the half of it is not there.
        self.fails(507, "PUT", files("box", "big"), b"x" * (20 << 20))
        names = [e["name"] for e in self.ok("GET", files("box", ".", "/list")).json["entries"]]
        self.assertEqual(sorted(names), ["d", "p", "secret"])

    def test_who_goes_away_in_the_middle_of_a_file(self):
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.socket_path)
        s.sendall(b"PUT " + files("box", "half").encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 5000)
        wait_for("its command", lambda: ".part" in self.run_in("box", "ls -A")["stdout"])
        s.close()
        wait_for("nothing of it", lambda: self.run_in("box", "ls -A")["stdout"] == "")

    def test_links_lead_nowhere_else(self):
        host = self.path("host", "of the host\n")
        self.run_in("box", "ln -s %s leak; ln -s %s into" % (host, self.tmp))
        self.fails(404, "GET", files("box", "leak"))
        self.assertNotEqual(self.call("PUT", files("box", "into/new"), b"x").status, 201)
        self.assertFalse(os.path.exists(self.path("new")))


class Records(ApiCase):
    def test_logs_and_events(self):
        self.start()
        box = self.box()
        self.run_in(box, "echo out; echo err >&2")
        lines = wait_for("its output", lambda: (lambda l: l if len(l) == 2 else None)(self.ok("GET", "/v1/sandboxes/%s/logs" % box).lines))
        self.assertEqual(lines, [{"type": "stdout", "data": "out\n"}, {"type": "stderr", "data": "err\n"}])
        self.assertEqual(self.ok("GET", "/v1/sandboxes/%s/logs?encoding=base64" % box).lines[0]["data"], "b3V0Cg==")
        query = urllib.parse.urlencode({"filter": "kind = exec and proc.comm = sh"})
        events = wait_for("what is committed", lambda: self.ok("GET", "/v1/sandboxes/%s/events?%s" % (box, query)).lines)
        self.assertEqual({e["kind"] for e in events}, {"exec"})
        self.assertIn(["sh", "-c", "echo out; echo err >&2"], [e["proc"]["args"] for e in events])
        self.ok("GET", "/v1/sandboxes/%s/events" % box, headers={"Accept": "text/event-stream"})
        self.fails(400, "GET", "/v1/sandboxes/%s/events?filter=x+y" % box, word="filter")
        self.fails(400, "GET", "/v1/sandboxes/%s/events?follow=yes" % box, word="follow")
        # Followed to the end: the last one tells how it ended.
        followed = {}

        def follow(what):
            followed[what] = self.call("GET", "/v1/sandboxes/%s/%s?follow=true" % (box, what))
        threads = [threading.Thread(target=follow, args=(w,)) for w in ("events", "logs")]
        for t in threads:
            t.start()
        self.ok("DELETE", "/v1/sandboxes/" + box, status=204)
        for t in threads:
            t.join(TIMEOUT)
        self.assertEqual([e["kind"] for e in followed["events"].lines][-1], "session.stop")
        self.assertContiguous(followed["events"].lines)
        self.assertEqual(followed["logs"].lines[0], lines[0])
        # Of the dead only root hears, by id.
        self.assertEqual(self.ok("GET", "/v1/sandboxes/%s/events" % box).lines, followed["events"].lines)
        for what in ("logs", "events"):
            self.fails(404, "GET", "/v1/sandboxes/nobody/" + what)


class Rights(ApiCase):
    """Who asks is who is at the other end of the client's own socket: the front cannot lend anybody a right."""
    UID = 23456

    def setUp(self):
        super().setUp()
        # Others must be able to pass to the socket.
        run = tempfile.mkdtemp(prefix="warder-api-", dir="/tmp")
        self.addCleanup(shutil.rmtree, run, ignore_errors=True)
        os.chmod(run, 0o711)
        self.env["WARDER_RUN"] = os.path.join(run, "run")

    def other(self, method, target, body=None, uid=UID, gid=UID):
        """The same request by a process of that user; its answer."""
        pair = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(pair[0])
                os.setgroups([])
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
                answer = self.call(method, target, body, check=False)
                with os.fdopen(pair[1], "wb") as f:
                    f.write(b"%d " % answer.status + answer.body)
                code = 0
            finally:
                os._exit(code)
        os.close(pair[1])
        with os.fdopen(pair[0], "rb") as f:
            text = f.read()
        os.waitpid(pid, 0)
        status, _, body = text.partition(b" ")
        return Answer(int(status), {"Content-Type": "application/json"}, body)

    def test_strangers(self):
        self.start()
        self.assertEqual(self.other("GET", "/openapi.json").status, 200)  # no secret
        for method, target in (("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("GET", "/v1/sandboxes/x"), ("DELETE", "/v1/sandboxes/x"),
                               ("GET", files("x", "/etc/passwd"))):
            answer = self.other(method, target)
            self.assertEqual(answer.status, 403, answer.body)
            self.assertIn("may not speak", answer.json["message"])
        self.assertEqual(self.ps(), [])

    def test_a_tenant_has_its_own(self):
        import grp
        group = [g for g in grp.getgrall() if not g.gr_mem and g.gr_gid][0]
        self.start("tenants:\n  them: { groups: ['%s'], sandboxes: 2 }\nqueue: 0\npolicies: [default, strict]\n" % group.gr_name)

        def ask(method, target, body=None):
            return self.other(method, target, body, gid=group.gr_gid)
        mine = self.box(name="mine")
        made = ask("POST", "/v1/sandboxes", {"name": "theirs", "policy": "strict"})
        self.assertEqual((made.status, made.json["tenant"]), (201, "them"))
        self.assertEqual([b["name"] for b in ask("GET", "/v1/sandboxes").json], ["theirs"])
        self.assertEqual([b["name"] for b in self.ok("GET", "/v1/sandboxes").json], ["mine", "theirs"])
        self.assertEqual(ask("POST", "/v1/sandboxes/theirs/commands", {"cmd": "echo x"}).json["stdout"], "x\n")
        for method, target in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/commands"), ("GET", "/logs"), ("GET", "/events"),
                               ("GET", "/files?path=/etc/passwd"), ("PUT", "/files?path=x"), ("GET", "/files/list?path=/")):
            for word in (mine, "mine"):
                answer = ask(method, "/v1/sandboxes/%s%s" % (word, target), {"cmd": "true"} if target == "/commands" else None)
                self.assertEqual(answer.status, 404, (target, answer.body))
        # Snapshots are the tenant's, too.
        self.ok("POST", "/v1/sandboxes/mine/snapshots", {"name": "ours"}, 201)
        self.assertEqual(ask("POST", "/v1/sandboxes/mine/snapshots", {"name": "x"}).status, 404)
        self.assertEqual(ask("DELETE", "/v1/snapshots/ours").status, 404)
        self.assertEqual(ask("POST", "/v1/sandboxes/theirs/snapshots", {"name": "own"}).status, 201)
        self.assertEqual([s["snapshotID"] for s in ask("GET", "/v1/snapshots").json], ["own"])
        self.assertEqual([s["snapshotID"] for s in self.ok("GET", "/v1/snapshots").json], ["ours", "own"])
        for body in ({"policy": "dev"}, {"policy": "/etc/passwd"}, {"network": {"mode": "host"}}):
            answer = ask("POST", "/v1/sandboxes", body)
            self.assertEqual(answer.status, 403, (body, answer.body))
        self.assertEqual(ask("POST", "/v1/sandboxes", {"tenant": "default"}).status, 400)  # an option that is not for them
        self.assertEqual(ask("POST", "/v1/sandboxes").status, 201)
        self.assertEqual(ask("POST", "/v1/sandboxes").status, 429)
        self.assertEqual(self.ok("GET", "/v1/sandboxes/mine").json["sandboxID"], mine)
        # Who it was is in the record, as the kernel knows it.
        asked = wait_for("the event", lambda: [e for e in self.events(made.json["sandboxID"]) if field(e, "action.type") == "exec"])[0]
        self.assertRegex(asked["action"]["who"], "^uid %d, gid %d, pid [0-9]+, tenant them$" % (self.UID, group.gr_gid))
        ask("POST", "/v1/sandboxes/theirs/pause")
        action = wait_for("the event", lambda: [e for e in self.events(made.json["sandboxID"]) if field(e, "action.type") == "freeze"])[0]
        self.assertRegex(action["action"]["who"], "^uid %d, pid [0-9]+, by the agent" % self.UID)

    def test_the_front_has_no_rights(self):
        self.start()
        self.ok("GET", "/v1/version")
        front = [p for p in children(self.agent.pid) if comm_of(p) == "warder-api"]
        self.assertEqual(len(front), 1)
        with open("/proc/%d/status" % front[0]) as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        self.assertNotIn("0", status["Uid"].split())
        self.assertNotIn("0", status["Gid"].split())
        self.assertEqual(status["Groups"].strip(), "")
        for caps in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
            self.assertEqual(int(status[caps], 16), 0, caps)
        self.assertEqual(status["NoNewPrivs"], "1")
        # It is replaced when it dies, and nothing else is the worse for it.
        box = self.box()
        os.kill(front[0], signal.SIGKILL)

        def again():
            try:
                return self.call("GET", "/v1/sandboxes/" + box).status == 200
            except (OSError, http.client.HTTPException):
                return False
        wait_for("another one", again)


class Hostile(ApiCase):
    def raw(self, data, end=False):
        """Bytes to the socket; what comes until it closes."""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(TIMEOUT)
        s.connect(self.socket_path)
        try:
            s.sendall(data)
            if end:
                s.shutdown(socket.SHUT_WR)
            got = b""
            while True:
                piece = s.recv(65536)
                if not piece:
                    return got
                got += piece
        except (BrokenPipeError, ConnectionResetError):
            return b""
        finally:
            s.close()

    def test_bytes_that_are_no_request(self):
        self.start()
        close = b"Connection: close\r\n\r\n"
        for data in (b"\0" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n",
                     b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 8000, b"GET / HTTP/1.1\r\n" + b"A" * 60000,
                     b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n" + close,
                     b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(data[:30]):
                got = self.raw(data, end=True)
                self.assertFalse(re.match(rb"HTTP/1.1 2", got), got)
        got = self.raw(b"GET /v1/version HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100 + close)
        self.assertTrue(got.startswith(b"HTTP/1.1 431"), got)
        got = self.raw(b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 70000\r\n" + close + b" " * 70000)
        self.assertTrue(got.startswith(b"HTTP/1.1 413"), got)
        got = self.raw(b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 70000000\r\n" + close)
        self.assertTrue(got.startswith(b"HTTP/1.1 413"), got)
        body = b"%x\r\n%s\r\n" % (66000, b" " * 66000)
        got = self.raw(b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + close + body + b"0\r\n\r\n")
        self.assertTrue(got.startswith(b"HTTP/1.1 413"), got)
        # Two requests on one line; each has its answer.
        got = self.raw(b"GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/version HTTP/1.1\r\nHost: x\r\n" + close)
        self.assertEqual(got.count(b"HTTP/1.1 200"), 2)
        self.ok("GET", "/v1/version")
        self.assertEqual(self.ps(), [])

    def test_connections_of_one_user_are_counted(self):
        self.start()
        others = []

        def stranger():
            s = socket.socket(socket.AF_UNIX)  # without a time limit: then a full queue is an error
            pid_before = os.geteuid()
            os.seteuid(23457)
            try:
                s.connect(self.socket_path)  # waits for a place in the queue
            finally:
                os.seteuid(pid_before)
            return s
        os.chmod(self.tmp, 0o711)
        for i in range(70):
            others.append(stranger())
            self.addCleanup(others[-1].close)
        got = others[-1].recv(65536)
        self.assertTrue(got.startswith(b"HTTP/1.1 429"), got)
        self.ok("GET", "/v1/version")  # root is not in their way
        for s in others:
            s.close()

        def served():
            s = stranger()
            try:
                s.sendall(b"GET /v1/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return s.recv(65536).startswith(b"HTTP/1.1 200")
            except OSError:
                return False
            finally:
                s.close()
        wait_for("room again", served)

    def test_log_lines(self):
        self.start_logged()
        self.call("GET", "/v1/version")
        self.call("GET", "/v1/nothing%0aapi:%20uid%200", check=False)
        with self.subTest("escapes of a terminal"):
            self.raw(b"GET /v1/\x1b[31mx HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        wait_for("three lines", lambda: self.log().count("api: uid 0, pid") == 3)
        self.assertRegex(self.log(), r"api: uid 0, pid %d: GET /v1/version: 200, [0-9]+ bytes, [0-9]+ ms\n" % os.getpid())
        self.assertNotIn("\x1b", self.log())

    def start_logged(self):
        path = self.path("agent.log", "")
        with open(path, "wb") as f:
            self.agent = subprocess.Popen([WARDER, "agent"], env=self.env, stdin=subprocess.DEVNULL, stderr=f)
        self.agent.stderr = open(os.devnull, "rb")
        self.reader = threading.Thread(target=lambda: None)
        self.reader.start()
        wait_for("the agent", lambda: "ready" in self.log())

    def log(self):
        with open(self.path("agent.log"), errors="replace") as f:
            return f.read()


class Death(ApiCase):
    def test_the_agent_is_killed(self):
        """What runs goes on, also the stream of a command; the next agent finds all of it."""
        self.start()
        box = self.box(name="box", metadata={"k": "v"})
        self.run_in(box, "mkfifo fifo")
        c = Connection(self.socket_path)
        c.request("POST", "/v1/sandboxes/box/commands?stream=true", json.dumps({"cmd": "echo up; read x < fifo; echo $x; exit 6", "timeout": 0}),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        self.assertEqual(json.loads(r.readline())["type"], "start")
        self.assertEqual(json.loads(r.readline())["data"], "up\n")
        self.agent.kill()
        self.agent.wait()
        # Its front still has its stderr, and ends with the stream.
        self.addCleanup(self.agent.stderr.close)
        self.addCleanup(self.reader.join, 30)
        # Nobody listens now.
        wait_for("no front that takes more", lambda: self.is_refused())
        self.start()
        row = self.ok("GET", "/v1/sandboxes/box").json
        self.assertEqual((row["sandboxID"], row["metadata"]), (box, {"k": "v"}))
        self.run_in(box, "echo went on > fifo")
        self.assertEqual([json.loads(line) for line in r.read().splitlines()],
                         [{"type": "stdout", "data": "went on\n"}, {"type": "end", "exitCode": 6, "reason": "exit"}])
        c.close()
        self.ok("DELETE", "/v1/sandboxes/box", status=204)
        self.wait_sealed(box)
        self.assertCode(self.warder("verify", self.bundle(box)), 0)
        self.assertContiguous(self.events(box))

    def is_refused(self):
        try:
            self.call("GET", "/v1/version")
            return False
        except (OSError, http.client.HTTPException):
            return True

    def test_the_keeper_is_killed(self):
        self.start()
        box, other = self.box(name="box"), self.box(name="other")
        c = Connection(self.socket_path)
        c.request("POST", "/v1/sandboxes/box/commands?stream=true", json.dumps({"cmd": "echo up; sleep 1000"}),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        r.readline()
        self.assertEqual(json.loads(r.readline())["data"], "up\n")
        for pid in self.keepers()[box]:
            os.kill(pid, signal.SIGKILL)
        last = [json.loads(line) for line in r.read().splitlines()][-1]
        self.assertEqual(last["type"], "error")
        c.close()
        wait_for("it to be swept", lambda: [b["sandboxID"] for b in self.ok("GET", "/v1/sandboxes").json] == [other])
        wait_for("its control groups to go", lambda: not any(box in g for g in own_cgroups()))
        self.assertEqual(self.run_in("other", "echo x")["stdout"], "x\n")

    def test_no_api(self):
        self.agent = subprocess.Popen([WARDER, "agent", "--no-api"], env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=lambda: None)
        self.reader.start()
        self.assertIn(b"ready", self.agent.stderr.readline())
        self.assertFalse(os.path.exists(self.socket_path))


if __name__ == "__main__":
    unittest.main()

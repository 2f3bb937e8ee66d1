# SPDX-License-Identifier: Apache-2.0
"""`warder mcp` as its clients see it: a session over stdio, with and without an agent."""

import base64
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import unittest

from warder import *

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_agent import AgentCase

need_root()

try:
    import jsonschema
except ImportError:
    raise unittest.SkipTest("python3-jsonschema is not installed (make deps)")


class Client:
    """A client session: requests by number, answers as they come."""

    def __init__(self, case, *options, version="2025-06-18", start=True):
        self.proc = subprocess.Popen([WARDER, "mcp", *options], env=case.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
        case.addCleanup(case._end, self.proc)
        self.lines, self.answers, self.next, self.said = queue.Queue(), {}, 0, []
        for source, put in ((self.proc.stdout, self.lines.put), (self.proc.stderr, self.said.append)):
            threading.Thread(target=self.read, args=(source, put), daemon=True).start()
        if start:
            self.hello = self.request("initialize", protocolVersion=version, capabilities={},
                                      clientInfo={"name": "test", "version": "0"})["result"]
            self.send(method="notifications/initialized")

    @staticmethod
    def read(source, put):
        for line in source:
            put(line)
        put(None)

    def raw(self, data):
        self.proc.stdin.write(data)
        self.proc.stdin.flush()

    def send(self, **message):
        self.raw(json.dumps(dict({"jsonrpc": "2.0"}, **message)).encode() + b"\n")

    def ask(self, method, **params):
        self.next += 1
        self.send(id=self.next, method=method, params=params)
        return self.next

    def answer(self, id):
        while id not in self.answers:
            line = self.lines.get(timeout=TIMEOUT)
            if line is None:
                raise AssertionError("it ended: %r" % self.said)
            message = json.loads(line)
            self.answers[message.get("id")] = message
        return self.answers.pop(id)

    def request(self, method, **params):
        return self.answer(self.ask(method, **params))

    def tool(self, name, **arguments):
        return self.request("tools/call", name=name, arguments=arguments)["result"]

    def end(self):
        self.proc.stdin.close()
        return self.proc.wait(TIMEOUT)


class Mcp(AgentCase):
    def test_a_session_without_an_agent(self):
        c = Client(self, "--policy", "dev")
        self.assertEqual(c.hello["protocolVersion"], "2025-06-18")
        self.assertEqual(c.hello["serverInfo"]["name"], "warder")
        self.assertEqual(c.request("ping")["result"], {})
        tools = {t["name"]: t for t in c.request("tools/list")["result"]["tools"]}
        self.assertEqual(sorted(tools), ["list_files", "read_file", "run_command", "run_python", "write_file"])
        for t in tools.values():
            jsonschema.Draft202012Validator.check_schema(t["inputSchema"])
            jsonschema.Draft202012Validator.check_schema(t["outputSchema"])

        def use(name, **arguments):
            jsonschema.validate(arguments, tools[name]["inputSchema"])
            r = c.tool(name, **arguments)
            self.assertEqual([p["type"] for p in r["content"]], ["text"])
            if not r["isError"] or "structuredContent" in r:
                jsonschema.validate(r["structuredContent"], tools[name]["outputSchema"])
            return r
        r = use("run_command", command="echo out; echo err >&2; exit 3")
        self.assertTrue(r["isError"])
        self.assertEqual(r["content"][0]["text"], "out\n[stderr]\nerr\n[exit code 3: exit]")
        s = r["structuredContent"]
        self.assertEqual((s["exitCode"], s["stdout"], s["stderr"], s["stdoutTruncated"]), (3, "out\n", "err\n", False))
        r = use("run_python", code="import os\nprint(6 * 7, os.getcwd())\n")
        self.assertEqual((r["isError"], r["content"][0]["text"]), (False, "42 /workspace\n"))
        self.assertEqual(use("write_file", path="d/f ä", content="text\u00e4\n" * 20000)["structuredContent"],
                         {"path": "d/f ä", "size": 140000})
        r = use("read_file", path="d/f ä")
        self.assertEqual((r["content"][0]["text"], r["structuredContent"]["truncated"]), ("text\u00e4\n" * 20000, False))
        self.assertEqual([e["name"] for e in use("list_files", path="d")["structuredContent"]["entries"]], ["f ä"])
        self.assertEqual([e["path"] for e in use("list_files")["structuredContent"]["entries"]], ["d"])
        for name, arguments, word in (("read_file", {"path": "no"}, "'no' is not there"), ("read_file", {"path": "d"}, "is a directory"),
                                      ("list_files", {"path": "d/f ä"}, "is no directory"), ("write_file", {"path": "/etc/x", "content": ""}, "Read-only")):
            r = use(name, **arguments)
            self.assertTrue(r["isError"])
            self.assertIn(word, r["content"][0]["text"])
        # Much, and what is no text.
        use("run_command", command="head -c 300001 /dev/zero | tr '\\0' x > big; printf '\\377\\0' > bytes")
        r = use("read_file", path="big")["structuredContent"]
        self.assertEqual((len(r["content"]), r["truncated"]), (256 * 1024, True))
        r = use("read_file", path="bytes")["structuredContent"]
        self.assertEqual((base64.b64decode(r["content"]), r["encoding"]), (b"\xff\0", "base64"))
        s = use("run_command", command="echo first; cat big; echo; echo last")["structuredContent"]
        self.assertEqual((s["stdoutBytes"], s["stdoutTruncated"]), (300013, True))
        self.assertTrue(s["stdout"].startswith("first\n") and s["stdout"].endswith("last\n") and "234477 bytes left out" in s["stdout"])
        r = use("run_command", command="echo begun; sleep 1000", timeout=1)
        s = r["structuredContent"]
        self.assertEqual((s["exitCode"], s["reason"], s["stdout"], r["isError"]), (124, "timeout", "begun\n", True))
        self.assertEqual(use("run_command", command="/nothing")["structuredContent"]["exitCode"], 127)
        session = os.listdir(os.path.join(self.path("state"), "sessions"))
        self.assertEqual(len(session), 1)
        self.assertEqual(c.end(), 0)
        # It ended with its client, and what happened is on record.
        self.wait_sealed(session[0])
        self.assertCode(self.warder("verify", self.bundle(session[0])), 0)
        args = [e["proc"]["args"] for e in self.events(session[0]) if e["kind"] == "exec"]
        self.assertIn(["sh", "-c", "echo out; echo err >&2; exit 3"], args)
        self.warder("run", "--no-agent", "--quiet", "--", "true")  # sweeps

    def test_messages_that_are_wrong(self):
        self.start()
        c = Client(self, start=False)
        self.assertEqual(c.request("tools/list")["error"]["code"], -32600)  # initialize comes first
        self.assertEqual(c.request("ping")["result"], {})
        self.assertEqual(c.request("initialize", capabilities={})["error"]["code"], -32602)
        for asked, given in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25")):
            self.assertEqual(c.request("initialize", protocolVersion=asked, capabilities={})["result"]["protocolVersion"], given)
        for line, code in ((b"{", -32700), (b"\xff\xfe", -32700), (b"nonsense", -32700), (b"[" * 100000, -32700), (b"[]", -32600),
                           (b'{"jsonrpc":"1.0","method":"ping"}', -32600), (b"7", -32600), (b"x" * (3 << 20), -32600),
                           (b'{"jsonrpc":"2.0","method":"ping","id":null}', -32600), (b'{"jsonrpc":"2.0","method":"ping","id":{}}', -32600)):
            with self.subTest(line[:30]):
                c.raw(line + b"\n")
                self.assertEqual(c.answer(None)["error"]["code"], code)
        self.assertEqual(c.request("no/such")["error"]["code"], -32601)
        for params in ({}, {"name": 1}, {"name": "no_tool"}, {"name": "run_command"}, {"name": "run_command", "arguments": []},
                       {"name": "run_command", "arguments": {"command": 1}}, {"name": "run_command", "arguments": {"command": "x", "more": 1}},
                       {"name": "run_command", "arguments": {"command": "x", "timeout": -1}}, {"name": "read_file", "arguments": {"path": "a\0"}},
                       {"name": "read_file", "arguments": {"command": "x"}}, {"name": "write_file", "arguments": {"path": "x"}}):
            with self.subTest(params):
                self.assertEqual(c.request("tools/call", **params)["error"]["code"], -32602)
        # What needs no answer gets none; after all that it works.
        c.raw(b'\n  \r\n{"jsonrpc":"2.0","method":"no/such"}\n{"jsonrpc":"2.0","id":5,"result":{}}\n')
        c.send(method="notifications/cancelled", params={"requestId": 99})
        c.raw(b'[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]\n')
        self.assertEqual((c.answer("a")["result"], c.answer("b")["result"]), ({}, {}))
        c.raw(b'{"jsonrpc":"2.0","id":"in pieces","method":')
        c.raw(b'"ping"}\n')
        self.assertEqual(c.answer("in pieces")["result"], {})
        self.assertEqual(c.tool("run_command", command="echo x")["content"][0]["text"], "x\n")
        self.assertEqual(c.end(), 0)

    def test_calls_at_once_and_one_that_is_cancelled(self):
        self.start()
        c = Client(self, "--name", "box")
        slow = c.ask("tools/call", name="run_command", arguments={"command": "touch up; sleep 1000", "timeout": 1000})
        wait_for("it to run", lambda: not c.tool("run_command", command="ls up")["isError"])
        ids = [c.ask("tools/call", name="run_command", arguments={"command": "echo %d" % i}) for i in range(20)]
        for i, id in reversed(list(enumerate(ids))):
            self.assertEqual(c.answer(id)["result"]["content"][0]["text"], "%d\n" % i)
        c.send(method="notifications/cancelled", params={"requestId": slow, "reason": "enough"})
        wait_for("its end", lambda: c.tool("run_command", command="ps -e -o comm= | grep -c sleep")["structuredContent"]["stdout"] == "0\n")
        self.assertEqual(c.request("ping")["result"], {})
        self.assertNotIn(slow, c.answers)
        # The agent knows it as any other sandbox.
        self.assertEqual([r["name"] for r in self.ps()], ["box"])
        self.assertCode(self.warder("exec", "box", "true"), 0)
        self.assertEqual(c.end(), 0)
        self.assertEqual(self.ps(), [])  # gone when it ends

    def test_a_rule_kills_the_sandbox_in_the_middle(self):
        self.start()
        c = Client(self)
        other = c.ask("tools/call", name="run_command", arguments={"command": "touch up; sleep 1000", "timeout": 1000})
        wait_for("it to run", lambda: not c.tool("run_command", command="ls up")["isError"])
        r = c.tool("run_command", command="unshare -m true; sleep 1000")
        for r in (r, c.answer(other)["result"], c.tool("run_command", command="echo x")):
            self.assertTrue(r["isError"])
            self.assertEqual((r["structuredContent"]["reason"], r["structuredContent"]["sandboxEnded"]), ("rule", True))
            self.assertIn("killed by rule 'Namespace changed from inside a sandbox'", r["content"][0]["text"])
        r = c.tool("read_file", path="x")
        self.assertTrue(r["isError"])
        self.assertIn("killed by rule", r["content"][0]["text"])
        self.assertEqual(c.end(), 0)

    def test_who_dies(self):
        self.start()
        c = Client(self, "--name", "box")
        c.tool("run_command", command="true")
        session = self.ps()[0]["session"]
        c.proc.kill()  # the client's end without a word
        c.proc.wait()
        wait_for("its end", lambda: not self.ps())
        self.wait_sealed(session)
        stop = [e for e in self.events(session) if e["kind"] == "session.stop"]
        self.assertEqual(stop[0]["run"]["reason"], "hangup")
        # The agent may die: what runs goes on. The keeper may not, and that is told.
        c = Client(self, "--name", "box")
        c.tool("run_command", command="echo kept > f")
        self.agent.kill()
        self.agent.wait()
        self.addCleanup(self.agent.stderr.close)
        self.start()
        self.assertEqual(c.tool("read_file", path="f")["content"][0]["text"], "kept\n")
        slow = c.ask("tools/call", name="run_command", arguments={"command": "touch up; sleep 1000", "timeout": 1000})
        wait_for("it to run", lambda: not c.tool("run_command", command="ls up")["isError"])
        for pid in self.keepers()[self.ps()[0]["session"]]:
            os.kill(pid, signal.SIGKILL)
        r = c.answer(slow)["result"]
        self.assertTrue(r["isError"])
        self.assertIn("sandbox has ended", r["content"][0]["text"])
        self.assertEqual(c.end(), 0)

    def test_a_sandbox_that_cannot_be_made(self):
        self.start()
        c = Client(self, "--policy", "no-such-policy")
        r = c.tool("run_command", command="true")
        self.assertTrue(r["isError"])
        self.assertIn("no-such-policy", r["content"][0]["text"])
        self.assertEqual(c.end(), 0)
        for argv, word in ((["mcp", "x"], "options only"), (["mcp", "--nonsense"], "nonsense"), (["mcp", "--", "--", "true"], "without a command")):
            done = self.warder(*argv)
            self.assertCode(done, 125)
            self.assertOneLine(done, word)

    def test_options_and_workspace(self):
        self.start()
        os.mkdir(self.path("ws"))
        place = idmapped(self, "w")
        c = Client(self, "--workspace", place, "--timeout", "1s", "--", "--env", "A=b c", "--memory", "64M")
        self.assertEqual(c.tool("run_command", command="echo $A > /workspace/f; cat f")["content"][0]["text"], "b c\n")
        with open(os.path.join(place, "f")) as f:
            self.assertEqual(f.read(), "b c\n")
        self.assertEqual(self.ps()[0]["memory"], 64 << 20)
        self.assertEqual(c.tool("run_command", command="sleep 1000")["structuredContent"]["reason"], "timeout")
        c.proc.send_signal(signal.SIGTERM)
        self.assertEqual(c.proc.wait(TIMEOUT), 0)
        self.assertEqual(self.ps(), [])


if __name__ == "__main__":
    unittest.main()

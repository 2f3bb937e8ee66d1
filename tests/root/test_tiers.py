# SPDX-License-Identifier: Apache-2.0
"""Which hooks serve a family, chosen by the kernel, forced by WARDER_TIER, told by doctor."""

import json
import os
import unittest

from probes import *

CALLS = {"process", "file", "net", "limit", "escape"}


class Tiers(Probes):
    def families(self, tier=None):
        env = dict(os.environ)
        env.pop("WARDER_TIER", None)
        if tier:
            env["WARDER_TIER"] = tier
        done = cmd(helper("probe_dump"), "--families", env=env)
        self.assertEqual(done.code, 0, done)
        rows = [json.loads(line) for line in done.out.splitlines()]
        return {r["family"]: r for r in rows if "family" in r}

    def has_full(self):
        return self.families()["escape"]["tier"] == "full"

    def test_portable(self):
        rows = self.families("portable")
        for name, r in rows.items():
            self.assertEqual(r["tier"], "portable" if name in CALLS else "common", r)
            self.assertTrue(r["ok"], r)
            self.assertEqual("sys_exit" in r["hook"], name in CALLS, r)

    def test_full_uses_no_tracepoint_of_system_calls(self):
        if not self.has_full():
            raise unittest.SkipTest("this kernel refuses trampolines: " + self.families()["file"]["detail"])
        rows = self.families("full")
        for name in CALLS:
            self.assertEqual((rows[name]["tier"], rows[name]["ok"]), ("full", True), rows[name])
            self.assertNotIn("sys_exit", rows[name]["hook"])
        need("bpftool")
        d = self.script("""
import subprocess
out = subprocess.run(["bpftool", "-j", "prog", "show"], stdout=subprocess.PIPE).stdout
tell(names=[p.get("name") for p in json.loads(out)])
""", wrap=["env", "WARDER_TIER=full"])
        names = set(d.told["names"])
        self.assertIn("on_newtask", names)
        self.assertNotIn("on_sys_exit", names)
        self.assertTrue({"on_call_end", "on_x64_call"} & names, names)

    def test_full_is_not_faked(self):
        """Asked for by name it is there, or its families are missing with the reason; nothing else fails."""
        rows = self.families("full-multi")
        for name, r in rows.items():
            if r["ok"]:
                self.assertEqual(r["tier"], "full" if name in CALLS else "common", r)
            else:
                self.assertIn(name, CALLS)
                self.assertTrue(r["detail"], r)

    def test_what_is_missing_is_named(self):
        if self.has_full():
            raise unittest.SkipTest("this kernel has the full tier")
        result = self.path("result")
        done = cmd(WARDER, "run", "--quiet", "--result", result, "--session-dir", self.path("s"), "--", "/bin/true",
                   env=dict(os.environ, WARDER_TIER="full"))
        self.assertEqual(done.code, 0, done)
        with open(result) as f:
            degraded = " ".join(json.load(f)["degraded"])
        for name in CALLS:
            self.assertIn(name, degraded)

    def test_calls_beyond_the_return_probes_are_a_gap(self):
        """A kernel has so many return probes under way at a time; whoever uses them up is not unseen in silence."""
        if "kretprobe.multi" not in self.families()["file"]["hook"]:
            raise unittest.SkipTest("no return probes here: " + self.families()["file"]["detail"])
        os.mkfifo(self.path("fifo"))
        d = self.script("""
import threading
threading.stack_size(65536)
def wait():
    os.close(os.open("fifo", os.O_RDONLY))
threads = [threading.Thread(target=wait) for i in range(400)]
for t in threads: t.start()
time.sleep(2)
w = os.open("fifo", os.O_WRONLY)
for t in threads: t.join()
""")
        missed, = [g for g in d.gaps if g["missed"]]
        self.assertGreater(missed["count"], 100)

    def test_a_tier_that_does_not_exist(self):
        done = cmd(helper("probe_dump"), "--families", env=dict(os.environ, WARDER_TIER="best"))
        self.assertEqual(done.code, 3)
        self.assertIn(b"WARDER_TIER=best", done.err)

    def test_doctor_tells(self):
        env = {k: v for k, v in os.environ.items() if k != "WARDER_TIER"}
        done = cmd(WARDER, "doctor", "--json", env=env)
        rows = {r["name"]: r for r in json.loads(done.out)["families"]}
        self.assertTrue(rows.pop("prevent")["ok"])  # which probe_dump loads only when it is to enforce

        def hooks(rows):
            # Doctor has enforcement on, and then the programs that prevent note the names.
            return {n: (r["tier"], r["hook"].replace("fmod_ret/security_path_", "kprobe.multi/security_path_"))
                    for n, r in rows.items()}
        self.assertEqual(hooks(rows), hooks(self.families()))


if __name__ == "__main__":
    unittest.main()

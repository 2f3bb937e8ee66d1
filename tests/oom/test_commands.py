# SPDX-License-Identifier: Apache-2.0
"""No memory: commands that need no root, with each of their allocations failing once, alone and with all behind it."""

import os
import subprocess
import unittest

from oom import Orders, each_failure
from warder import *


class Commands(TestCase):
    def setUp(self):
        super().setUp()
        if "asan" in os.path.basename(BUILD):
            self.skipTest("ASan has an allocator of its own, which LD_PRELOAD does not reach")
        self.orders = Orders(self.path("orders"))
        self.bundle = self.path("bundle")
        os.mkdir(self.bundle)
        subprocess.run([helper("bundle"), "make", self.bundle], check=True)

    def each(self, *argv, **kw):
        return each_failure(self, [WARDER, *argv], self.orders, self.env, **kw)

    def test_fields(self):
        self.each("fields")

    def test_rules_check(self):
        self.path("r.yaml", "- list: shells\n  items: [sh, bash]\n- macro: shell\n  condition: proc.comm in (shells)\n"
                            "- rule: R\n  desc: d\n  condition: kind = exec and shell and proc.exe startswith /tmp\n"
                            "  output: hello %proc.exe\n  priority: INFO\n")
        self.each("rules", "check", self.path("r.yaml"))

    def test_verify(self):
        self.each("verify", self.bundle)

    def test_events(self):
        self.each("events", self.bundle)

    def test_export(self):
        self.each("export", self.bundle, "--format", "json")

    def test_policy(self):
        self.each("policy", "check", "strict")

    def test_plan(self):
        self.each("run", "--dry-run", "--policy", "strict", "--", "true")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The default packs on real programs: everyday work is quiet, its bad twin is not."""

import os
import unittest

from warder import *


def alerts(s):
    return [field(a, "rule.name") for a in s.kinds("rule.alert")]


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Packs(TestCase):
    def test_what_was_compiled_is_no_dropped_program(self):
        need("gcc")
        s = self.session("sh", "-c", "echo 'int main(void){return 0;}' > a.c && gcc -o hello a.c && ./hello")
        self.assertCode(s, 0)
        hello = s.kinds("exec", proc__comm="hello")
        self.assertEqual([(e["proc"]["dropped"], e["proc"]["dropped_by"]) for e in hello], [(True, "ld")])
        self.assertEqual(alerts(s), [])

    def test_what_was_copied_or_renamed_is(self):
        s = self.session("sh", "-c", "cp /usr/bin/true x && mv x y && ./y")
        self.assertCode(s, 0)
        self.assertEqual(alerts(s), ["Dropped program started"])
        self.assertEqual(field(s.kinds("rule.alert")[0], "proc.dropped_by"), "cp")

    def test_packages_become_events(self):
        """Stand-ins: what counts is how the tool is called and what it writes."""
        pip = self.path("pip", "#!/bin/sh\nd=lib/site-packages/left_pad-1.3.dist-info; mkdir -p $d; echo x > $d/METADATA\n")
        os.chmod(pip, 0o755)
        s = self.session("sh", "-c", "/opt/pip install -q left_pad==1.3 -i https://r.example/simple; "
                                     "/opt/pip list; mkdir -p node_modules/@a/b; echo '{}' > node_modules/@a/b/package.json",
                         options=["--ro", pip + ":/opt/pip"])
        self.assertCode(s, 0)
        seen = [(field(e, "package.manager"), field(e, "package.name"), field(e, "package.version"),
                 field(e, "package.registry"), field(e, "package.from")) for e in s.kinds("package.install")]
        self.assertEqual(seen, [("pip", "left_pad", "1.3", "https://r.example/simple", "command"),
                                ("pip", "left_pad", "1.3", None, "files"),
                                ("npm", "@a/b", None, None, "files")])
        self.assertEqual(alerts(s), ["Package from another registry"])
        self.assertEqual(field(s.kinds("package.install")[0], "vantage"), "agent")

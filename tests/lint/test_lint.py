# SPDX-License-Identifier: Apache-2.0
"""The checks of layers and of what is freed by itself hold for the tree, and see what they are there to see."""

import os
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def check(script, *args):
    p = subprocess.run([os.path.join(HERE, script), *args], capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def layers(*args):
    return check("layers.sh", *args)


class Format(unittest.TestCase):
    def test_what_is_not_formatted_is_refused(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "a.c")
            for text, bad in (("int x;\n", False), ("int   x ;\n", True)):
                with open(path, "w") as f:
                    f.write(text)
                code, said = check("format.sh", path)
                if code == 77:
                    self.skipTest(said)
                self.assertEqual((code != 0, "a.c:1:" in said), (bad, bad), said)


class Init(unittest.TestCase):
    LINES = (("auto_buf struct buf a;", True), ("auto_buf struct buf a = { 0 }, b;", True),
             ("AUTO(reader) struct reader *r;", True), ("auto_buf struct buf a = { 0 }, b = { 0 };", False),
             ("auto_close int fd = open(path, 1), b = -1;", False), ("auto_free char *s = f(g(1, 2), 3);", False))

    def test_the_tree_keeps_it(self):
        self.assertEqual(check("init.sh"), (0, ""))

    def test_lines(self):
        for line, bad in self.LINES:
            with tempfile.TemporaryDirectory() as top:
                os.mkdir(os.path.join(top, "rules"))
                with open(os.path.join(top, "rules", "a.c"), "w") as f:
                    f.write("void f(void)\n{\n\t%s\n}\n" % line)
                code, said = check("init.sh", top)
                self.assertEqual((code != 0, said.startswith("rules/a.c:3: ")), (bad, bad), line)


class Layers(unittest.TestCase):
    def test_the_tree_keeps_them(self):
        code, said = layers()
        self.assertEqual((code, said), (0, ""))

    def check(self, path, line):
        with tempfile.TemporaryDirectory() as top:
            os.makedirs(os.path.join(top, os.path.dirname(path)))
            with open(os.path.join(top, path), "w") as f:
                f.write("#include <stdio.h>\n" + line + "\n")
            return layers(top)

    def refused(self, path, include, why):
        code, said = self.check(path, '#include "%s"' % include)
        self.assertNotEqual(code, 0)
        self.assertTrue(said.startswith(path + ":2: "), said)
        self.assertIn(why, said)

    def accepted(self, path, include):
        self.assertEqual(self.check(path, '#include "%s"' % include), (0, ""))

    def test_up_is_refused(self):
        self.refused("userspace/store/a.c", "userspace/pipeline/pipeline.h", "point down")
        self.refused("userspace/base/a.c", "userspace/event/event.h", "includes nothing of ours")
        self.refused("bpf/abi/a.h", "userspace/base/str.h", "includes nothing of ours")

    def test_sibling_is_refused(self):
        self.refused("rules/a.c", "exporters/exporter.h", "may not use exporters")
        self.refused("userspace/event/a.c", "userspace/config/config.h", "may not use config")

    def test_bpf_includes_only_its_own(self):
        self.refused("bpf/a.bpf.c", "userspace/base/str.h", "BPF programs include only")
        self.accepted("bpf/a.bpf.c", "bpf/lib/emit.bpf.h")

    def test_from_the_root(self):
        self.refused("userspace/store/a.c", "store.h", "from the root")

    def test_only_capture_has_skeletons(self):
        self.refused("userspace/store/a.c", "warder.skel.h", "only userspace/capture")
        self.accepted("userspace/capture/a.c", "warder.skel.h")

    def test_down_is_fine(self):
        self.accepted("userspace/cli/a.c", "userspace/pipeline/pipeline.h")
        self.accepted("userspace/pipeline/a.c", "rules/rule.h")
        self.accepted("rules/a.c", "userspace/event/event.h")
        self.accepted("userspace/event/a.c", "bpf/abi/wire.h")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Names: where a hook in front of the act is to be had, paths are those that the kernel used, through links and
`..`; where not, they are the caller's words, and say so."""

import os
import unittest

from probes import *


class Names(Probes):
    def setUp(self):
        super().setUp()
        self.resolved = names_are_resolved()

    def names(self, d, kind):
        return [tuple(r.get(k) for k in ("base", "path", "base2", "path2")) for r in d.kinds(kind)]

    def expect(self, d, kind, real, said):
        """real: (path, path2) as the kernel has them; said: (base, path, base2, path2) of the caller."""
        if self.resolved:
            self.assertEqual(self.names(d, kind), [(None, a, None, b) for a, b in real])
            self.assertEqual([r["flags"] & TOCTOU for r in d.kinds(kind)], [0] * len(real))
        else:
            self.assertEqual(self.names(d, kind), said)
            self.assertTrue(all(r["flags"] & TOCTOU for r in d.kinds(kind)))

    def test_links_and_dots_on_the_way(self):
        t, p = self.tmp, self.path
        os.makedirs(p("real/sub"))
        self.path("real/f", "x")
        os.symlink("real/sub", p("link"))
        d = self.script("""
os.mkdir("link/../made")
os.rename("link/../made", sys.argv[1] + "/link/moved")
os.link("link/../f", "link/hard")
os.symlink("some/text", "link/soft")
os.mkfifo("link/../fifo")
os.unlink("link/soft")
os.rmdir("link/moved")
os.chmod("link/hard", 0o640)
os.chown("link/../f", 3, 4)
os.truncate("link/hard", 5)
os.symlink("real/f", "last")
os.chmod("last", 0o600)
""")
        self.expect(d, "file.mkdir", [(p("real/made"), None)], [(t, "link/../made", None, None)])
        self.expect(d, "file.rename", [(p("real/made"), p("real/sub/moved"))],
                    [(t, "link/../made", None, t + "/link/moved")])
        self.expect(d, "file.link", [(p("real/sub/hard"), p("real/f")), (p("real/sub/soft"), "some/text"),
                                     (p("last"), "real/f")],
                    [(t, "link/hard", t, "link/../f"), (t, "link/soft", None, "some/text"),
                     (t, "last", None, "real/f")])
        self.expect(d, "file.mknod", [(p("real/fifo"), None)], [(t, "link/../fifo", None, None)])
        self.expect(d, "file.delete", [(p("real/sub/soft"), None), (p("real/sub/moved"), None)],
                    [(t, "link/soft", None, None), (t, "link/moved", None, None)])
        self.expect(d, "file.attr", [(p(n), None) for n in ("real/sub/hard", "real/f", "real/sub/hard", "real/f")],
                    [(t, n, None, None) for n in ("link/hard", "link/../f", "link/hard", "last")])

    def test_what_failed_before_leaves_nothing_for_the_next(self):
        """One that gets to the hook and fails, then one that is refused before it."""
        t, p = self.tmp, self.path
        os.makedirs(p("full/x"))
        os.mkdir(p("shut"))
        os.chmod(p("shut"), 0o700)
        d = self.script("""
def attempt(act, *a):
    try:
        act(*a)
    except OSError:
        pass
os.chmod(".", 0o777)
os.setgid(65534); os.setuid(65534)
attempt(os.rmdir, "full")
attempt(os.rmdir, "shut/none")
attempt(os.rename, "full", "full/x/y")
attempt(os.rename, "shut/a", "shut/b")
""")
        denied = [(r.get("base"), r["path"], r["ret"]) for r in d.kinds("file.delete", "file.rename") if r["ret"] == -13]
        self.assertIn((t, "shut/none", -13), denied)
        self.assertIn((t, "shut/a", -13), denied)

    def test_deep(self):
        t = self.tmp
        d = self.script("""
os.makedirs("/".join("d%d" % i for i in range(200)))
os.symlink("/".join("d%d" % i for i in range(199)), "deep")
os.mkdir("deep/../d198/made")
os.chdir("deep")
os.mkdir("here")
""")
        last = d.kinds("file.mkdir")[-2:]
        deep = t + "/" + "/".join("d%d" % i for i in range(199))
        full = [os.path.join(r.get("base", ""), r["path"]) for r in last]
        self.assertEqual(full[1], deep + "/here")
        if self.resolved:
            self.assertEqual(full[0], deep + "/made")

    def test_odd_directories(self):
        """A mount point, the root, a directory that lies in two places, a name as long as can be."""
        t, p = self.tmp, self.path
        for n in ("a", "b", "m"):
            os.mkdir(p(n))
        long = "n" * 255
        d = self.script("""
sc(272, 0x20000)
sc(165, b"none", b"/", 0, 0x44000, 0)
sc(165, b"a", b"b", 0, 4096, 0)
sc(165, b"tmpfs", b"m", b"tmpfs", 0, 0)
os.mkdir("b/in_a")
os.mkdir("a/too")
os.chmod("m", 0o755)
os.mkdir("m/%s")
os.mkdir("/warder-names-test"); os.rmdir("/warder-names-test")
""" % long)
        want = [p("b/in_a"), p("a/too"), p("m/" + long), "/warder-names-test"]
        self.assertEqual([os.path.join(r.get("base", ""), r["path"]) for r in d.kinds("file.mkdir")], want)
        self.assertEqual([os.path.join(r.get("base", ""), r["path"]) for r in d.kinds("file.attr")], [p("m")])
        if self.resolved:
            self.assertEqual([r["flags"] for r in d.kinds("file.mkdir", "file.attr")], [0] * 5)


if __name__ == "__main__":
    unittest.main()

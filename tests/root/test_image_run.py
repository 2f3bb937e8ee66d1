# SPDX-License-Identifier: Apache-2.0
"""Sandboxes whose root is an image or a directory."""

import json
import os
import subprocess
import time
import unittest

from images import *
from warder import *

PASSWD = b"root:x:0:0::/:/bin/sh\napp:x:33:44::/:/bin/sh\n"


class ImageCase(TestCase):
    def setUp(self):
        super().setUp()
        need_root()
        # The store lies where its files can be shown as another user's, as on any disk.
        self.env["WARDER_STATE"] = os.path.join(idmapped(self, "disk"), "state")

    def image(self, *layers, name="it", **config):
        files = oci_files([l.bytes() if isinstance(l, Tar) else l for l in layers], config)
        done = self.warder("image", "import", "--name", name, self.path("image.tar", as_tar(files)))
        self.assertCode(done, 0)
        return done.out.decode().split()[0]

    def run_image(self, *command, options=(), **kw):
        return self.session(*command, options=("--root", "image:it", "--no-default-rules", *options), **kw)

    def base(self):
        return Tar().busybox().dir("etc").file("etc/passwd", PASSWD).dir("usr").file("usr/lower", b"lower\n", 0o600) \
            .dir("closed", 0o500).file("closed/f", b"closed\n", 0o400)


class Run(ImageCase):
    def test_its_files_and_its_configuration(self):
        digest = self.image(self.base(), Env=["FROM_IMAGE=1", "BOTH=image"], WorkingDir="/usr/", User="app",
                            Entrypoint=["/bin/sh", "-c"],
                            Cmd=["id; pwd; echo $FROM_IMAGE $BOTH; cat lower /closed/f; readlink /proc/self/exe; "
                                 "echo changed > /usr/lower; cat /usr/lower; rm /closed/f; ls /closed; mkdir /usr/new; "
                                 "mkdir /new; test -e /usr/bin/env || echo none of the host; stat -c %a,%U /usr/lower"])
        folder, argv = self.session_argv((), ("--root", "image:it", "--env", "BOTH=given"))
        s = Session(cmd(*argv[:-1], env=self.env), folder)  # no "--": the image's own command
        self.assertCode(s, 0)
        self.assertEqual(s.out.decode().split("\n"),
                         ["uid=33(app) gid=44", "/usr", "1 given", "lower", "closed", "/bin/busybox", "changed",
                          "none of the host", "600,app", ""])
        self.assertIn(b"'/new': Permission denied", s.err)
        self.assertEqual(s.result["image"], digest)
        self.assertEqual(s.kinds("session.start")[0]["run"]["image"], digest)
        self.assertIntact(s)
        # Nothing of it is in the image, and what is said goes.
        self.assertCode(self.warder("image", "verify", "it"), 0)
        s = self.session("sh", "-c", "id; pwd; cat /usr/lower",
                         options=("--root", "image@" + digest, "--user", "5:6", "--cwd", "/bin", "--env", "FROM_IMAGE=2"))
        self.assertEqual((s.code, s.out), (0, b"uid=5 gid=6\n/bin\nlower\n"))

    def test_it_is_root_only_by_name(self):
        self.image(self.base(), User="root")
        s = self.run_image("sh", "-c", "id; cat /proc/self/uid_map; grep -E 'Cap|NoNew' /proc/self/status; "
                           "mount -t tmpfs none /usr; chmod u+s /usr/lower; dd if=/dev/zero of=/dev/full count=1; echo x > /proc/sys/kernel/core_pattern")
        self.assertIn(b"uid=0(root) gid=0", s.out)
        self.assertRegex(s.out, rb"\n +0 +\d{10} +1\n")
        for line in s.out.decode().splitlines():
            if line.startswith("Cap"):
                self.assertEqual(int(line.split()[1], 16), 0, line)
        self.assertIn(b"NoNewPrivs:\t1", s.out)
        self.assertNotEqual(s.code, 0)

    def test_what_it_writes_is_limited_and_private(self):
        self.image(self.base())
        s = self.run_image("sh", "-c", "dd if=/dev/zero of=/usr/big bs=1M count=20 2>&1; stat -c %s /usr/big; echo x > /tmp/y",
                           options=("--tmp", "8M"))
        self.assertIn(b"No space left on device", s.out)
        self.assertLess(int(s.out.split(b"\n")[-2]), 8 << 20)
        s = self.run_image("ls", "/usr")
        self.assertEqual((s.code, s.out), (0, b"lower\n"))

    def test_an_image_in_use_stays(self):
        digest = self.image(self.base())
        ready = self.path("ready")
        os.mkdir(ready)
        proc, finish = self.start_session("sh", "-c", "touch /ready/here; cat > /dev/null", stdin=subprocess.PIPE,
                                          options=("--root", "image:it", "--rw", idmapped(self, "seen") + ":/ready"))
        wait_for("the sandbox", lambda: os.path.exists(self.path("seen/here")))
        done = self.warder("image", "rm", "it")
        self.assertCode(done, 125)
        self.assertOneLine(done, "in use", digest)
        self.assertCode(self.warder("image", "verify", "it"), 0)
        self.assertCode(finish(b""), 0)
        self.assertCode(self.warder("image", "rm", "it"), 0)

    def test_only_signed_ones(self):
        self.image(self.base())
        self.assertCode(self.warder("keys", "init"), 0)
        key = self.path("host.pub", self.warder("keys", "public").out)
        policy = self.path("p.yaml", "root: image:it\nuser: '7'\nimage: {keys: [host.pub]}\n")
        s = self.session("true", options=("--policy", policy))
        self.assertCode(s, 125)
        self.assertOneLine(s, "not signed")
        done = self.warder("policy", "check", policy)
        self.assertCode(done, 1)
        self.assertCode(self.warder("image", "sign", "it"), 0)
        s = self.session("id", options=("--policy", policy))
        self.assertEqual((s.code, s.out), (0, b"uid=7 gid=7\n"))
        self.path("host.pub", "warder-host-key-1 " + "ab" * 32 + "\n")
        s = self.session("true", options=("--policy", policy))
        self.assertOneLine(s, "none of the listed keys")
        s = self.session("true", options=("--root", "/usr", "--image-key", key))
        self.assertOneLine(s, "signed")

    def test_a_directory(self):
        root = self.path("tree")
        os.mkdir(root)
        subprocess.run(["tar", "-x", "-C", root], input=self.base().bytes(), check=True)
        os.chmod(root, 0o755)
        os.mkdir(root + "/dev")
        os.mknod(root + "/dev/sda", 0o60666, os.makedev(8, 0))
        os.chmod(root + "/usr/lower", 0o600)
        s = self.session("sh", "-c", "ls /dev; cat /usr/lower; echo x > /usr/x; ls /usr; id",
                         options=("--root", root, "--no-default-rules"))
        self.assertNotIn(b"sda", s.out)
        self.assertIn(b"uid=1000", s.out)
        self.assertEqual(s.err.count(b"ermission denied"), 2, s)  # others' files are others'
        self.assertEqual(sorted(os.listdir(root + "/usr")), ["lower"])
        self.assertIsNone(s.result["image"])
        for place, words in (("/", "the whole host"), ("/proc", "/proc"), (self.path("none"), "none"),
                             (self.env["WARDER_STATE"], "holds"), (os.path.dirname(self.env["WARDER_STATE"]), "holds"),
                             (self.path("file", b""), "not a directory")):
            done = self.warder("run", "--root", place, "--", "true")
            self.assertCode(done, 125)
            self.assertOneLine(done, words)

    def test_mistakes(self):
        self.assertOneLine(self.warder("run", "--root", "image:none", "--", "true"), "no image 'none'")
        self.image(self.base(), User="nobody-here")
        for argv, words in ((("--root", "image:it", "true"), "--user"), (("--root", "image:../x", "true"), "image name"),
                            (("--root", "image@sha256:12", "true"), "64 hex digits"),
                            (("--root", "image:it", "--user", "x", "true"), "UID"),
                            (("--root", "image:it", "--user", "70000", "true"), "at most 65535")):
            done = self.warder("run", *argv)
            self.assertCode(done, 125)
            self.assertIn(words.encode(), done.err)
        done = self.warder("run", "--root", "image:it", "--user", "1")
        self.assertCode(done, 125)
        self.assertIn(b"no command given, and the image has none", done.err)
        policy = self.path("p.yaml", "roots: image:it\n")
        self.assertOneLine(self.warder("run", "--policy", policy, "true"), "p.yaml:1:8", "did you mean 'root'")

    def test_the_plan_says_it(self):
        digest = self.image(self.base(), User="app")
        done = self.warder("run", "--dry-run", "--json", "--root", "image:it", "true")
        plan = json.loads(done.out)
        self.assertEqual((plan["image"], plan["layers"]["uid"], plan["layers"]["gid"]), (digest, 33, 44))
        self.assertEqual((plan["root"][0]["do"], plan["root"][0]["target"]), ("image", "/"))
        self.assertEqual(plan["root"][0]["source"], os.path.join(self.env["WARDER_STATE"], "images", "sha256", digest[7:], "rootfs"))
        other = json.loads(self.warder("run", "--dry-run", "--json", "--root", "image:it", "--user", "0", "true").out)
        self.assertNotEqual(plan["policy"], other["policy"])

    def test_where_ids_cannot_be_mapped(self):
        """An overlay has no id-mapped mounts: the files are then somebody else's, and the plan says so."""
        for name in ("low", "up", "work", "state"):
            os.mkdir(self.path("disk/" + name))
        over = self.path("disk/state")
        done = cmd("mount", "-t", "overlay", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" %
                   tuple(self.path("disk/" + n) for n in ("low", "up", "work")), "none", over)
        if done.code:
            self.skipTest("an overlay cannot be mounted here: %s" % done.err.decode().strip())
        self.addCleanup(subprocess.run, ["umount", over], check=True)
        self.image(self.base())
        s = self.run_image("sh", "-c", "cat /etc/passwd; cat /usr/lower; echo x > /usr/x")
        self.assertIn("root.ids", s.result["degraded"])
        self.assertIn(PASSWD, s.out)
        self.assertEqual(s.err.count(b"ermission denied"), 2, s)


class Hostile(ImageCase):
    def test_links_where_ours_go(self):
        """Everything of ours that a runtime ever followed a link for: it is ours all the same, and the host untouched."""
        victim = self.path("victim")
        os.mkdir(victim)
        bad = Tar().busybox().dir("usr")
        for name in "proc sys dev tmp run workspace etc var".split():
            bad.link(name, victim)
        os.chmod(self.path("k", b"secret\n"), 0o600)
        for layer in (bad, Tar().busybox().dir("etc").dir("dev").dir("run").dir("var").link("etc/resolv.conf", "/etc/shadow")
                      .link("etc/hosts", victim + "/h").link("etc/hostname", "../../../" + victim).link("dev/null", "/proc/1/mem")
                      .link("dev/console", "/etc/shadow").link("dev/pts", victim).link("dev/shm", victim).link("dev/fd", "/")
                      .link("run/secrets", victim).link("var/tmp", victim).link("proc", "/sys").link("workspace", "/proc"),
                      Tar().busybox().dir("proc").file("proc/self", b"fake").dir("proc/sys").file("proc/sys/x").file("dev", b"")
                      .file("tmp", b"").file("workspace", b"").file("run", b"").file("etc", b"").file("var", b"")):
            self.image(layer)
            s = self.run_image("sh", "-c", "set -e; echo a > /tmp/a; echo b > /workspace/b; echo c > /run/c; echo d > /dev/null; "
                               "echo e > /dev/shm/e; echo f > /var/tmp/f; cat /etc/hostname /run/secrets/k; cat /etc/resolv.conf; "
                               "cat /proc/self/comm; readlink /dev/fd; ls /dev/pts; cd /workspace; cat b",
                               options=("--secret", "k=" + self.path("k"),))
            self.assertCode(s, 0)
            self.assertIn(b"nameserver 127.0.0.1", s.out)
            self.assertIn(b"secret\n", s.out)
            self.assertIn(b"\ncat\n/proc/self/fd\nptmx\nb\n", s.out)
            self.assertEqual(os.listdir(victim), [])

    def test_a_bind_does_not_follow(self):
        victim, mine = self.path("victim"), idmapped(self, "mine")
        os.mkdir(victim)
        self.image(self.base().link("data", victim).link("up", "/proc").dir("real"))
        for target in ("/data", "/data/x", "/up/sys", "/up"):
            s = self.run_image("true", options=("--rw", mine + ":" + target))
            self.assertCode(s, 125)
            self.assertOneLine(s, target)
        s = self.run_image("sh", "-c", "touch /real/made/deep/f", options=("--rw", mine + ":/real/made/deep"))
        self.assertCode(s, 0)
        self.assertEqual((os.listdir(mine), os.listdir(victim)), (["f"], []))

    def test_many_names_in_the_root(self):
        tar = self.base()
        for i in range(600):
            tar.dir("d%03d" % i)
        self.image(tar)
        self.assertCode(self.run_image("sh", "-c", "echo x > /tmp/x"), 0)


if __name__ == "__main__":
    unittest.main()

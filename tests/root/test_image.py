# SPDX-License-Identifier: Apache-2.0
"""Root file systems: what is imported, what is refused, and what a hostile archive cannot do."""

import gzip
import json
import os
import signal
import stat
import subprocess
import tarfile
import time
import unittest

from images import *
from warder import *


class Images(TestCase):
    def setUp(self):
        super().setUp()
        need_root()
        need("zstd")

    def image(self, *argv, **kw):
        return self.warder("image", *argv, **kw)

    def imports(self, data, *options):
        """Of bytes; the digest, and the root that came of it."""
        done = self.image("import", *options, self.path("in", data))
        self.assertCode(done, 0)
        digest = done.out.decode().split()[0]
        return digest, self.rootfs(digest)

    def rootfs(self, digest):
        return os.path.join(self.env["WARDER_STATE"], "images", "sha256", digest[7:], "rootfs")

    def refused(self, data, *words, options=()):
        done = self.image("import", *options, self.path("in", data) if isinstance(data, bytes) else data)
        self.assertCode(done, 125)
        self.assertOneLine(done, *words)
        self.assertNothing()
        return done

    def assertNothing(self):
        """No image, and nothing half done."""
        images = os.path.join(self.env["WARDER_STATE"], "images")
        self.assertEqual(os.listdir(os.path.join(images, "sha256")), [])
        self.assertEqual(os.listdir(os.path.join(images, "names")), [])
        self.assertEqual([n for n in os.listdir(os.path.join(images, "tmp")) if n != "lock"], [])

    def read(self, root, path):
        with open(os.path.join(root, path), "rb") as f:
            return f.read()


class Import(Images):
    def layers(self):
        return [Tar().dir("etc").file("etc/a", b"1").file("etc/b", b"1").dir("d").file("d/x", b"1").bytes(),
                Tar().file("etc/.wh.a").file("etc/b", b"2").file("d/.wh..wh..opq").file("d/y", b"2").bytes()]

    def check(self, root):
        self.assertEqual(sorted(os.listdir(root)), ["d", "etc"])
        self.assertEqual((sorted(os.listdir(root + "/etc")), self.read(root, "etc/b")), (["b"], b"2"))
        self.assertEqual(os.listdir(root + "/d"), ["y"])

    def test_every_form_of_one_image(self):
        layers = self.layers()
        config = {"Env": ["A=b"], "Cmd": ["/bin/sh"]}
        oci, docker = oci_files(layers, config), docker_files(layers, config)
        packed = oci_files(layers, config, pack=zstd)
        both = dict(oci, **docker)
        forms = {"directory": as_dir(self.path("layout"), oci), "tar": self.path("t", as_tar(oci)),
                 "gzip": self.path("g", gzip.compress(as_tar(oci))), "zstd": self.path("z", zstd(as_tar(oci)))}
        digest = json.loads(oci["index.json"])["manifests"][0]["digest"]
        for name, path in forms.items():
            with self.subTest(name):
                done = self.image("import", path, "--name", "of/" + name)
                self.assertCode(done, 0)
                self.assertEqual(done.out.decode().split()[0], digest)
        self.check(self.rootfs(digest))
        for name, files in (("zstd layers", packed), ("both kinds", both)):
            with self.subTest(name):
                got, root = self.imports(as_tar(files))
                self.assertEqual(got, json.loads(files["index.json"])["manifests"][0]["digest"])
                self.check(root)
        with self.subTest("docker"):
            got, root = self.imports(as_tar(docker))
            self.assertEqual(got, sha(config_of(layers, config)))
            self.check(root)
        with self.subTest("stdin"):
            done = self.image("import", "-", input=gzip.compress(as_tar(docker)))
            self.assertCode(done, 0)
            self.assertEqual(done.out.decode().split(), [got, "(was", "there)"])
        listed = [json.loads(l) for l in self.image("list", "--json").out.splitlines()]
        names = [i for i in listed if i["digest"] == digest][0]["names"]
        self.assertEqual(names, sorted("of/" + n for n in forms))

    def test_a_docker_archive_with_linked_layers(self):
        layer = Tar().file("f", b"x").bytes()
        files = docker_files([layer, layer])
        tar = Tar()
        for name, data in files.items():
            if name.startswith("%064x/" % 1):
                tar.link(name, "../%064x/layer.tar" % 0)
            else:
                tar.file(name, data)
        _, root = self.imports(tar.bytes())
        self.assertEqual(self.read(root, "f"), b"x")

    def test_a_plain_root(self):
        tar = Tar().dir("etc", 0o555).file("etc/x", b"hello", 0o4755).hard("etc/y", "etc/x") \
            .add("etc/naïve \u2713", data=b"n").file("/abs", b"a").file("./dot//f", b"d") \
            .add("dev/sda", tarfile.BLKTYPE, devmajor=8, devminor=0).add("fifo", tarfile.FIFOTYPE).bytes()
        digest, root = self.imports(tar, "--name", "r")
        self.assertEqual(digest, sha(tar))
        st = os.stat(root + "/etc/x")
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_nlink, st.st_mtime), (0o755, 2, 1700000000))
        self.assertEqual(stat.S_IMODE(os.stat(root + "/etc").st_mode), 0o755)  # its owner can write
        self.assertEqual(sorted(os.listdir(root)), ["abs", "dev", "dot", "etc"])
        self.assertEqual((self.read(root, "etc/naïve \u2713"), os.listdir(root + "/dev")), (b"n", []))
        for at, dirs, files in os.walk(root):  # nobody's on this host
            for name in dirs + files:
                st = os.lstat(os.path.join(at, name))
                self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o6000), (0x6fffffe0, 0x6fffffe0, 0))
        shown = json.loads(self.image("show", "r", "--json").out)
        self.assertEqual((shown["kind"], shown["left_out"], shown["stripped"], shown["bytes"]), ("rootfs", 2, 1, 8))

    def test_the_configuration(self):
        passwd = b"root:x:0:0::/:/bin/sh\napp:x:33:44::/:\n"
        layer = Tar().file("etc/passwd", passwd).file("etc/group", b"staff:x:50:\n").bytes()
        for user, ids in (("app", (33, 44)), ("app:staff", (33, 50)), ("7:8", (7, 8)), ("33", (33, 44)), ("root", (0, 0)),
                          ("nobody-here", None), ("", None), ("70000", None), ("app:none", None)):
            with self.subTest(user):
                config = {"User": user, "Env": ["PATH=/bin", "X=1"], "WorkingDir": "/w", "Entrypoint": ["/e"], "Cmd": ["c"]}
                digest, _ = self.imports(as_tar(oci_files([layer], config)))
                shown = json.loads(self.image("show", digest, "--json").out)
                self.assertEqual((shown["env"], shown["workdir"], shown["entrypoint"], shown["cmd"]),
                                 (["PATH=/bin", "X=1"], "/w", ["/e"], ["c"]))
                self.assertEqual((shown["uid"], shown["gid"]) if "uid" in shown else None, ids)

    def test_which_of_several(self):
        a, b = oci_files([Tar().file("f", b"a").bytes()], name="a"), oci_files([Tar().file("f", b"b").bytes()], name="b")
        rows = [json.loads(x["index.json"])["manifests"][0] for x in (a, b)]
        other = dict(rows[0], digest="sha256:" + "0" * 64, platform={"os": "linux", "architecture": "s390x"})
        both = dict(a, **b)
        both["index.json"] = json.dumps({"manifests": rows}).encode()
        self.refused(as_tar(both), "--ref")
        _, root = self.imports(as_tar(both), "--ref", "b")
        self.assertEqual(self.read(root, "f"), b"b")
        a["index.json"] = json.dumps({"manifests": [other, rows[0]]}).encode()
        _, root = self.imports(as_tar(a))
        self.assertEqual(self.read(root, "f"), b"a")
        a["index.json"] = json.dumps({"manifests": [other]}).encode()
        done = self.image("import", self.path("in", as_tar(a)))
        self.assertOneLine(done, "nothing for linux/" + ARCH)

    def test_names_and_removal(self):
        digest, root = self.imports(Tar().file("f").bytes(), "--name", "reg.example/one:1")
        self.assertCode(self.image("import", self.path("in"), "--name", "two"), 0)
        done = self.image("show", "one")
        self.assertCode(done, 125)
        self.assertOneLine(done, "no image 'one'", "did you mean 'reg.example/one:1'")
        self.assertOneLine(self.image("show", "q"), "no image 'q'", "image list")
        self.assertOneLine(self.image("import", self.path("in"), "--name", "../x"), "image name")
        self.assertCode(self.image("rm", "image:reg.example/one:1"), 0)
        self.assertTrue(os.path.exists(root))
        self.assertCode(self.image("rm", "two"), 0)
        self.assertFalse(os.path.exists(root))
        self.assertNothing()
        self.imports(Tar().file("f").bytes(), "--name", "three")
        self.assertCode(self.image("rm", "image@" + digest), 0)
        self.assertNothing()

    def test_a_changed_file_is_found(self):
        digest, root = self.imports(Tar().file("f", b"good").link("l", "f").bytes(), "--name", "x")
        self.assertCode(self.image("verify", "x"), 0)
        for change in (lambda: open(root + "/f", "w").write("evil"), lambda: os.chmod(root + "/f", 0o600),
                       lambda: os.symlink("/", root + "/new"), lambda: (os.unlink(root + "/l"), os.symlink("x", root + "/l"))):
            self.assertCode(self.image("rm", "x"), 0)
            self.imports(Tar().file("f", b"good").link("l", "f").bytes(), "--name", "x")
            change()
            done = self.image("verify", "x", "--json")
            self.assertCode(done, 1)
            self.assertIn("not what was imported", json.loads(done.out)["error"])

    def test_signatures(self):
        digest, _ = self.imports(Tar().file("f").bytes(), "--name", "x")
        self.assertOneLine(self.image("sign", "x"), "keys init")
        self.assertCode(self.warder("keys", "init"), 0)
        key = self.path("host.pub", self.warder("keys", "public").out)
        other = self.path("other.pub", b"warder-host-key-1 " + b"ab" * 32 + b"\n")
        done = self.image("verify", "x", "--key", key)
        self.assertCode(done, 1)
        self.assertIn(b"not signed", done.err)
        signed = self.image("sign", "x")
        self.assertCode(signed, 0)
        self.assertCode(self.image("verify", "x", "--key", key), 0)
        done = self.image("verify", "x", "--key", other)
        self.assertCode(done, 1)
        self.assertIn(b"none of the listed keys", done.err)
        # Kept beside the file, on another host: what is not signed by the key does not come in.
        sig = self.path("x.sig", signed.out)
        self.assertCode(self.image("rm", "x"), 0)
        self.assertCode(self.image("import", self.path("in"), "--name", "x", "--signature", sig, "--key", key), 0)
        self.assertCode(self.image("rm", "x"), 0)
        self.refused(self.path("in"), "none of the listed keys", options=("--name", "x", "--signature", sig, "--key", other))
        evil = Tar().file("g").bytes()
        self.refused(evil, "of another image", options=("--name", "x", "--signature", sig, "--key", key))


class Hostile(Images):
    def test_names_that_lead_out(self):
        for name, tar, words in (
                ("dotdot", Tar().file("../../../../tmp/out"), ("..",)),
                ("dotdot inside", Tar().dir("a").file("a/../../x"), ("..",)),
                ("below a link", Tar().link("a", "/etc").file("a/passwd", b"x"), ("a/passwd", "symbolic link")),
                ("below a link above", Tar().link("a", "..").file("a/b/c", b"x"), ("a/b/c", "symbolic link")),
                ("below a file", Tar().file("a").file("a/b"), ("a/b", "no directory")),
                ("hard link out", Tar().hard("a", "../../etc/passwd"), ("hard link", "..")),
                ("hard link behind a link", Tar().link("a", "/etc").hard("b", "a/passwd"), ("hard link",)),
                ("hard link to nothing", Tar().hard("a", "etc/shadow"), ("hard link",)),
                ("hard link to a directory", Tar().dir("d").hard("a", "d"), ("hard link to a directory",)),
                ("hard link to a whiteout", Tar().file(".wh.x").hard("a", ".wh.x"), ("whiteout",)),
                ("long", Tar().file("/".join(["n" * 200] * 21)), ("longer than 4095",)),
                ("long part", Tar().file("n" * 256), ("255",)),
                ("deep", Tar().file("/".join("d" * 129)), ("128",)),
                ("whiteout of ..", Tar().file("d/.wh..."), ("whiteout",)),
                ("whiteout of .", Tar().file("d/.wh.."), ("whiteout",)),
                ("whiteout of nothing", Tar().file("d/.wh."), ("whiteout",)),
                ("in a whiteout", Tar().dir(".wh.d").file(".wh.d/x"), ("whiteout",)),
                ("whiteout below a link", Tar().link("a", "/").file("a/.wh.etc"), ("symbolic link",)),
                ("opaque below a link", Tar().link("a", "/").file("a/.wh..wh..opq"), ("symbolic link",))):
            with self.subTest(name):
                self.refused(tar.bytes(), *words)
        self.assertFalse(os.path.exists("/tmp/out"))

    def test_whiteouts_stay_in_the_image(self):
        below = Tar().dir("d").file("d/x", b"1").link("etc", "/etc").bytes()
        _, root = self.imports(as_tar(oci_files([below, Tar().file(".wh.etc").file("d/.wh.x").file("d/x", b"2").bytes()])))
        self.assertEqual((sorted(os.listdir(root)), self.read(root, "d/x")), (["d"], b"2"))
        self.assertTrue(os.path.exists("/etc/passwd"))
        # An opaque root: nothing of below, all of this layer, in whatever order they stand.
        top = Tar().file("first").file(".wh..wh..opq").dir("d").file("d/y").bytes()
        _, root = self.imports(as_tar(oci_files([below, top])))
        self.assertEqual((sorted(os.listdir(root)), os.listdir(root + "/d")), (["d", "first"], ["y"]))
        # What comes after its own whiteout, and before it.
        top = Tar().dir("d").file("d/new").file(".wh.d").bytes()
        _, root = self.imports(as_tar(oci_files([below, top])))
        self.assertEqual(os.listdir(root + "/d"), ["new"])

    def test_a_name_twice_is_written_anew(self):
        victim = self.path("victim", b"kept")
        tar = Tar().link("a", victim).file("a", b"evil").file("h1", b"1").hard("h2", "h1").file("h2", b"2") \
            .dir("t").file("t/x").file("t", b"file").dir("t").bytes()
        _, root = self.imports(tar)
        self.assertEqual((self.read(root, "a"), self.read(root, "h1"), self.read(root, "h2")), (b"evil", b"1", b"2"))
        self.assertEqual(os.listdir(root + "/t"), [])
        with open(victim, "rb") as f:
            self.assertEqual(f.read(), b"kept")

    def test_bombs(self):
        zeros = Tar().file("zeros", bytes(80 << 20)).bytes()
        self.refused(zstd(zeros), "bomb")
        self.refused(as_tar(oci_files([zeros], pack=zstd)), "layer 1 of 1", "bomb")
        self.refused(Tar().file("a", bytes(600 << 10)).file("b", bytes(600 << 10)).bytes(), "'b'", "--max-size",
                     options=("--max-size", "1M"))
        many = Tar()
        for i in range(200):
            many.file("f%d" % i)
        self.refused(many.bytes(), "more than 100 entries", options=("--max-files", "100"))
        # A sparse file is as large as it says: 8 EiB take no room on a disk.
        sparse = self.path("sparse")
        with open(sparse, "wb") as f:
            f.truncate(1 << 42)
        done = cmd("tar", "-S", "-C", self.tmp, "-cf", self.path("s.tar"), "sparse")
        self.assertCode(done, 0)
        self.refused(self.path("s.tar"), "sparse", "--max-size")

    def test_what_is_damaged(self):
        good = Tar().file("f", b"x" * 5000).bytes()
        for name, data, words in (
                ("nothing", b"", ("nothing",)), ("text", b"hello world\n" * 100, ("archive",)),
                ("cut", good[:2000], ("truncated",)), ("cut gzip", gzip.compress(good)[:-20], ("too soon",)),
                ("bad gzip", b"\x1f\x8b" + b"\xff" * 100, ("gzip",)), ("xz", b"\xfd7zXZ\0" + bytes(100), ("xz", "gzip")),
                ("bad zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 100, ("zstd",))):
            with self.subTest(name):
                self.refused(data, *words)
        self.assertOneLine(self.image("import", self.path("none")), "none", "no such file")
        os.mkdir(self.path("empty"))
        self.refused(self.path("empty"), "--root DIR")

    def test_what_is_not_what_its_digest_says(self):
        layer = Tar().file("f", b"x").bytes()
        good = oci_files([layer])

        def changed(**kw):
            return as_tar(dict(good, **kw))

        manifest = json.loads(good["index.json"])["manifests"][0]
        blobs = [n for n in good if n.startswith("blobs/")]
        for name in blobs:
            with self.subTest(name):
                data = bytearray(good[name])
                data[4 if data[:2] == b"\x1f\x8b" else -1] ^= 1  # a layer's time, or the last brace
                self.refused(changed(**{name: bytes(data)}), "is not what its digest says")
                missing = {k: v for k, v in good.items() if k != name}
                self.refused(as_tar(missing), name[13:20])
        self.refused(changed(**{"index.json": json.dumps({"manifests": [dict(manifest, size=3)]}).encode()}), "should be 3")
        for digest in ("sha512:" + "a" * 128, "sha256:../../../etc/passwd", "sha256:" + "A" * 64, 5, None):
            row = json.dumps({"manifests": [dict(manifest, digest=digest)]}).encode()
            self.refused(changed(**{"index.json": row}), "digest")
        # The tar in the layer is another one than the configuration says.
        self.refused(as_tar(oci_files([layer], config_of([b"other"]))), "diff_id")
        self.refused(as_tar(oci_files([layer], config_of([]))), "diff_ids")
        self.refused(as_tar(oci_files([layer], config_of([layer], architecture="s390x"))), "s390x")
        files = docker_files([layer])
        name = [n for n in files if n.endswith(".json") and n != "manifest.json"][0]
        self.refused(as_tar(dict(files, **{name: files[name] + b" "})), "sha256")
        evil = json.dumps([{"Config": "../../etc/passwd", "Layers": []}]).encode()
        self.refused(as_tar(dict(files, **{"manifest.json": evil})), "no name of a blob")
        for text in (b"{", b"[]", b'{"manifests":{}}', b'{"a":1,"a":2}', b"[" * 100, b'{"manifests":[]}'):
            self.refused(changed(**{"index.json": text}), "index.json")

    def test_a_layout_with_links(self):
        files = oci_files([Tar().file("f").bytes()])
        path = as_dir(self.path("layout"), files)
        blob = [n for n in files if n.startswith("blobs/")][0]
        os.rename(os.path.join(path, blob), self.path("moved"))
        os.symlink(self.path("moved"), os.path.join(path, blob))
        self.refused(path, "symbolic links")

    def test_killed_and_full(self):
        self.assertCode(self.image("list"), 0)
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        proc = subprocess.Popen([WARDER, "image", "import", fifo, "--name", "x"], env=self.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(fifo, "wb") as f:
            f.write(Tar().file("f", bytes(100000)).bytes()[:60000])
            f.flush()
            tmp = os.path.join(self.env["WARDER_STATE"], "images", "tmp")
            wait_for("its place", lambda: os.path.isdir(tmp) and [n for n in os.listdir(tmp) if n != "lock"])
            # While it works, nobody sweeps it away.
            self.assertCode(self.image("list"), 0)
            self.assertTrue([n for n in os.listdir(tmp) if n != "lock"])
            proc.send_signal(signal.SIGKILL)
            proc.wait()
        wait_for("the end of its process", lambda: self.image("list").code == 0 and
                 [n for n in os.listdir(tmp) if n != "lock"] == [])
        self.assertEqual(self.image("list").out, b"")
        self.assertNothing()
        small = self.path("small")
        os.mkdir(small)
        self.assertCode(cmd("mount", "-t", "tmpfs", "-o", "size=1m", "none", small), 0)
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        self.env["WARDER_STATE"] = small
        self.refused(Tar().file("big", os.urandom(2 << 20)).bytes(), "'big'", "the disk is full")

    def test_usage(self):
        for argv in ((), ("import",), ("list", "x"), ("show",), ("import", "a", "b"), ("frob",)):
            self.assertCode(self.image(*argv), 125)
        self.assertOneLine(self.image("import", "x", "--max-files", "0"), "limit")
        self.assertIn(b"OCI layout", self.image("--help").out)


if __name__ == "__main__":
    unittest.main()

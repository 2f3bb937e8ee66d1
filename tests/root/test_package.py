# SPDX-License-Identifier: Apache-2.0
"""What `make install` and `make deb` give: a package that comes and goes without a trace, manual pages, completion."""

import os
import re
import subprocess
import unittest

from warder import *

need_root()

# Where dpkg and its triggers keep their own books.
BOOKS = ("var/lib/dpkg/", "var/log/", "var/cache/", "run/", "etc/ld.so.cache", "var/lib/systemd/", "tmp/",
         "var/lib/warder")  # and the record that the test itself put there

# In a copy of this system that is written to memory only: $1 is its directory, $2 the package.
IN_A_COPY = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/m"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/m"
rm -rf "$1/m/etc/warder" "$1/m/var/lib/warder" # what an earlier one left on this system
(cd "$1/upper" && find . -mindepth 1 -printf '%y %P\n') > "$1/before"
cp "$2" "$1/m/warder.deb"
mount --bind /proc "$1/m/proc"
mount --bind /dev "$1/m/dev"
in_it() { chroot "$1/m" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c "$2"; }
in_it "$1" 'dpkg -i /warder.deb' >&2
in_it "$1" 'dpkg -V warder | grep -v /usr/share/ || :'
in_it "$1" 'warder version; warder policy show strict | head -n 1; ls -d /etc/warder/policies; test -x /usr/bin/warder'
in_it "$1" 'mkdir -p /var/lib/warder/sessions && echo kept > /var/lib/warder/sessions/record'
in_it "$1" 'dpkg -i /warder.deb && dpkg -r warder && dpkg -P warder' >&2
in_it "$1" 'cat /var/lib/warder/sessions/record; rm -r /var/lib/warder'
rm -f "$1/m/warder.deb"
echo ---
cd "$1/upper"
find . -mindepth 1 -printf '%y %P\n' | grep -vxFf "$1/before"
"""


class Package(TestCase):
    def test_comes_and_goes(self):
        need("dpkg-deb", "dpkg-shlibdeps", "unshare")
        done = cmd("make", "-s", "-C", SRC, "BUILD=" + os.path.relpath(BUILD, SRC), "deb")
        self.assertCode(done, 0)
        deb = os.path.join(SRC, done.out.decode().split()[-1])
        listed = cmd("dpkg-deb", "-c", deb).out.decode().splitlines()
        for line in listed:
            mode, owner = line.split()[:2]
            self.assertEqual(owner, "root/root", line)
            self.assertNotRegex(mode, r"^[^l].{2}s|^[^l].{5}s|^[^l].{7}w", line)
        pages = [line for line in listed if "/man1/warder" in line]
        commands = re.findall(r"^  (\w+) ", self.warder("help").out.decode(), re.M)
        self.assertEqual(len(pages), len(commands) + 1)

        done = cmd("unshare", "-m", "sh", "-c", IN_A_COPY, "sh", self.tmp, deb)
        if done.code and b"overlay" in done.err and b"dpkg" not in done.err:
            self.skipTest("this root file system cannot be below an overlay: " + done.err.decode().strip()[-200:])
        self.assertCode(done, 0)
        said, left = done.out.decode().split("---\n")
        version = self.warder("version").out.decode()
        self.assertEqual(said, version + "# strict: code that nobody has read; small, short, and ended when in doubt\n"
                         "/etc/warder/policies\nkept\n")
        self.assertIn(b"are kept", done.err)
        changed = [line for line in left.splitlines() if not line.startswith("d ")
                   and not line[2:].startswith(BOOKS)]
        self.assertEqual(changed, [])
        for line in left.splitlines():  # a directory that is new: those that were there are copied up as they are
            if not line[2:].startswith(BOOKS):
                self.assertTrue(os.path.lexists("/" + line[2:]), line)

    def test_install_and_uninstall(self):
        root = self.path("root")
        make = ["make", "-s", "-C", SRC, "BUILD=" + os.path.relpath(BUILD, SRC), "DESTDIR=" + root]
        self.assertCode(cmd(*make, "install"), 0)
        unit = os.path.join(root, "usr/local/lib/systemd/system/warder-agent.service")
        with open(unit) as f:
            self.assertEqual(set(re.findall(r"=(/\S+)", f.read())), {"/usr/local/bin/warder", "/bin/kill"})
        self.assertCode(cmd(os.path.join(root, "usr/local/bin/warder"), "version"), 0)
        self.assertCode(cmd(*make, "uninstall"), 0)
        self.assertEqual([f for _, _, files in os.walk(root) for f in files], [])

    def test_manual_pages(self):
        need("groff")
        self.assertCode(self.warder("completion", "man", self.tmp), 0)
        pages = sorted(os.listdir(self.tmp))
        for page in pages:
            done = cmd("groff", "-man", "-ww", "-Tutf8", os.path.join(self.tmp, page))
            self.assertEqual((done.code, done.err), (0, b""), page)
        # Every option of --help is in the page, as it is typed.
        text = subprocess.run(["col", "-bx"], input=cmd("groff", "-man", "-Tascii", "-P-c", "-rLL=200n", os.path.join(
            self.tmp, "warder-run.1")).out, stdout=subprocess.PIPE, check=True).stdout.decode()
        options = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", self.warder("run", "--help").out.decode(), re.M)
        self.assertGreater(len(options), 50)
        for option in options:
            self.assertRegex(text, r"(?m)^ +(-\w, )?%s\b" % option)
        done = self.warder("completion", "man", self.path("absent"))
        self.assertCode(done, 125)
        self.assertOneLine(done, "absent", "No such file")

    def complete(self, *words):
        """What bash offers for the last word."""
        script = self.path("warder.bash", self.warder("completion", "bash").out)
        done = cmd("bash", "-c", 'PATH=%s:$PATH; . %s; shift 0; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _warder; '
                   'printf "%%s\\n" "${COMPREPLY[@]}"' % (BUILD, script), "bash", *words, env=self.env, cwd=self.tmp)
        self.assertEqual((done.code, done.err), (0, b""))
        return [w for w in done.out.decode().splitlines() if w]

    def test_bash_completes(self):
        self.assertEqual(self.complete("warder", "se"), ["sessions", "selftest"])
        self.assertEqual(self.complete("warder", "keys", ""), ["init", "show", "public", "rotate"])
        self.assertEqual(self.complete("warder", "sink", ""), ["test", "list"])
        self.assertEqual(self.complete("warder", "sessions", "pr"), ["prune"])
        self.assertEqual(self.complete("warder", "run", "--mem"), ["--memory"])
        self.assertEqual(self.complete("warder", "create", "--idl"), ["--idle"])
        self.assertEqual(self.complete("warder", "run", "--memory", ""), [])
        self.assertEqual(self.complete("warder", "run", "--policy", "st"), ["strict"])
        self.path("strange file", "")
        self.assertEqual(self.complete("warder", "run", "--workspace", "stran"), ["strange file"])
        self.assertIn("true", self.complete("warder", "run", "--", "tru"))
        commands = re.findall(r"^  (\w+) ", self.warder("help").out.decode(), re.M)
        self.assertEqual(sorted(self.complete("warder", "")), sorted(commands + ["help"]))

    def test_zsh_script(self):
        text = self.warder("completion", "zsh").out.decode()
        self.assertTrue(text.startswith("#compdef warder\n"))
        for option in ("'--memory[", "'*--env["):
            self.assertIn(option, text)
        if not cmd("sh", "-c", "command -v zsh").out:
            return  # its grammar is tested where zsh is
        self.assertCode(cmd("zsh", "-n", self.path("_warder", text)), 0)


if __name__ == "__main__":
    unittest.main()

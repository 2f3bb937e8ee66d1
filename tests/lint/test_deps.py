# SPDX-License-Identifier: Apache-2.0
"""`make deps` against invented hosts: what it would install, and when it refuses."""

import os
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".ci", "deps")


class Deps(unittest.TestCase):
    def run_on(self, os_release, installed=False, uid=0, scanner=True, missing=("none",), machine="x86_64"):
        """(exit code, stdout, stderr, what apt-get was asked for)"""
        with tempfile.TemporaryDirectory() as top:
            def program(name, text):
                with open(os.path.join(top, name), "w") as f:
                    f.write("#!/bin/sh\n" + text + "\n")
                os.chmod(f.name, 0o755)
            program("dpkg-query", 'case "$4" in %s) exit 1;; esac; echo "ii "' % "|".join(missing) if installed else "exit 1")
            program("apt-cache", "exit %d" % (not scanner))
            program("uname", "echo " + machine)
            program("apt-get", 'echo "$@" >> %s/apt' % top)
            program("id", "echo %d" % uid)
            program("second", 'echo "second runsc of $1"; exit 1')
            with open(os.path.join(top, "os-release"), "w") as f:
                f.write(os_release)
            done = subprocess.run(["sh", SCRIPT], capture_output=True, text=True, env={
                "PATH": top + ":/usr/bin:/bin", "OS_RELEASE": f.name, "SECOND_RUNSC": top + "/second"})
            apt = ""
            if os.path.exists(top + "/apt"):
                with open(top + "/apt") as f:
                    apt = f.read()
            return done.returncode, done.stdout, done.stderr, apt

    def test_each_distribution_s_own_names(self):
        for release, own, others in (
                ("ID=debian\nVERSION_ID=12\n", "libclang-rt-14-dev", "linux-tools"),
                ("ID=debian\nVERSION_ID=\"13\"\n", "libclang-rt-19-dev", "linux-tools"),
                ("ID=ubuntu\nVERSION_ID=\"24.04\"\n", "linux-tools-common", " bpftool")):
            code, out, err, apt = self.run_on(release)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(own, apt)
            self.assertIn("libbpf-dev", apt)
            self.assertNotIn(others, apt)

    def test_all_there_means_no_apt(self):
        code, out, err, apt = self.run_on("ID=debian\nVERSION_ID=12\n", installed=True, uid=1000)
        self.assertEqual((code, err, apt), (0, "", ""))

    def test_the_scanner_by_machine_where_it_is_to_be_had(self):
        debian = "ID=debian\nVERSION_ID=12\n"
        self.assertIn("libhyperscan-dev", self.run_on(debian)[3])
        self.assertIn("libvectorscan-dev", self.run_on(debian, machine="aarch64")[3])
        code, out, err, apt = self.run_on(debian, scanner=False)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("there is no libhyperscan-dev here", out)
        self.assertNotIn("libhyperscan", apt)
        self.assertIn("libbpf-dev", apt)
        # All else is there: installed alone, or nothing to do.
        code, out, err, apt = self.run_on(debian, installed=True, missing=["libhyperscan-dev"])
        self.assertEqual((code, err), (0, ""))
        self.assertIn("install -q -y --no-install-recommends libhyperscan-dev\n", apt)
        code, out, err, apt = self.run_on(debian, installed=True, missing=["libhyperscan-dev"], scanner=False, uid=1000)
        self.assertEqual((code, err, apt), (0, "", ""))

    def test_a_second_runsc_for_the_tests(self):
        """Installed or not; and where there is none, all else is as it was."""
        for release, of in (("12", "bookworm-backports"), ("13", "bookworm")):
            for installed in (True, False):
                code, out, err, apt = self.run_on("ID=debian\nVERSION_ID=%s\n" % release, installed=installed)
                self.assertEqual((code, err), (0, ""))
                self.assertIn("second runsc of %s\n" % of, out)
        self.assertNotIn("second runsc", self.run_on("ID=debian\nVERSION_ID=12\n", machine="aarch64")[1])
        self.assertNotIn("second runsc", self.run_on("ID=ubuntu\nVERSION_ID=24.04\n")[1])

    def refused(self, *words, **host):
        code, out, err, apt = self.run_on(**host)
        self.assertEqual((code, out, apt), (1, "", ""))
        self.assertEqual(err.count("\n"), 1)
        for w in words:
            self.assertIn(w, err)

    def test_elsewhere_it_refuses(self):
        self.refused("Fedora", os_release="ID=fedora\nVERSION_ID=40\nPRETTY_NAME='Fedora Linux 40'\n")
        self.refused("Debian 12", os_release="ID=debian\nVERSION_ID=11\n")

    def test_without_root_it_names_what_is_missing(self):
        self.refused("root", "libbpf-dev", os_release="ID=debian\nVERSION_ID=12\n", uid=1000)


if __name__ == "__main__":
    unittest.main()

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The harness itself: what it promises about exit codes, output, files and errors. Run by `make check-vm`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
kernel=${VMTEST_KERNEL:-6.1}
vm() { timeout -k 5 280 "$here/vmtest" -k "$kernel" -c 1 -m 512 "$@" </dev/null >"$work/out" 2>"$work/err"; }

n=0
ok() { # ok TEXT COMMAND...: the command says whether it is so
	local text=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $text"
	else
		echo "not ok $n - $text"
		sed 's/^/# /' "$work/out" "$work/err" | tail -n 20
	fi
}
is() { # is WANTED GOT
	[ "$1" = "$2" ] || {
		echo "# '$2' instead of '$1'"
		return 1
	}
}
says() { grep -qF -e "$1" "$work/err"; }
refused() { # refused CODE WORD: one line that names it, nothing on stdout
	[ "$rc" = "$1" ] && [ "$(wc -l <"$work/err")" = 1 ] && [ ! -s "$work/out" ] && says "$2"
}
echo 1..17

# ---- without a VM ----
for args in "--nonsense" "--mem lots -- true" "--accel warp -- true" "--kernel" ""; do
	# shellcheck disable=SC2086  # a list of words
	"$here/vmtest" $args </dev/null >"$work/out" 2>"$work/err"
	rc=$?
	ok "refuses '$args'" refused 2 "--help"
done
"$here/vmtest" -k nonsense -- true </dev/null >"$work/out" 2>"$work/err"
rc=$?
ok "a kernel that is none is named" refused 125 "'nonsense'"

mkdir "$work/bin"
for t in bash readlink dirname id uname depmod apt-get dpkg-deb xz cat sed; do
	ln -s "$(PATH=$PATH:/usr/sbin:/sbin command -v $t)" "$work/bin/"
done
# shellcheck disable=SC2016  # for the inner shell
unshare -m sh -c 'mount -t tmpfs none /usr/sbin 2>/dev/null; mount -t tmpfs none /sbin 2>/dev/null; PATH=$1 exec "$2" true' \
	sh "$work/bin" "$here/vmtest" </dev/null >"$work/out" 2>"$work/err"
rc=$?
ok "without qemu it says what to install" refused 125 "make deps"

DEBIAN_MIRROR=http://127.0.0.1:9/debian "$here/vmtest" --cache "$work/cache" -k 6.1 -- true </dev/null >"$work/out" 2>"$work/err"
rc=$?
ok "offline it says so" is "125 yes" "$rc $(says 'cannot reach the Debian mirror' && echo yes)"

# ---- in the VM ----
mkdir "$work/shared"
# shellcheck disable=SC2016  # for the guest's shell
vm -s "$work/shared" -e "SAID=it's" -- sh -c 'echo "$SAID $(pwd) $1"; echo err >&2
	cat /sys/fs/cgroup/cgroup.controllers >'"$work"'/shared/cgroup; touch '"$work"'/mine; exit 7' sh 'a "b" $c'
rc=$?
ok "the command's exit code" is 7 $rc
ok "arguments, environment and directory arrive" is "it's $PWD a \"b\" \$c" "$(cat "$work/out")"
ok "stderr stays apart" is err "$(cat "$work/err")"
ok "what is written to a share is there, elsewhere it is gone" \
	is "yes no" "$([ -s "$work/shared/cgroup" ] && echo yes) $([ -e "$work/mine" ] || echo no)"
# shellcheck disable=SC2016  # for the guest's shell
vm --hybrid -- sh -c 'grep -c ^0::/ /proc/self/cgroup; [ -e /sys/fs/cgroup/pids/tasks ] && kill -TERM $$'
rc=$?
ok "a signal is 128 and its number, and hybrid has v1 beside v2" is "143 1" "$rc $(cat "$work/out")"
vm -t 15 -- sleep 1000
rc=$?
ok "a time-out is 124" is 124 $rc
vm -- sh -c 'echo c >/proc/sysrq-trigger; sleep 100'
rc=$?
ok "a crashed guest is 125 and shows its console" is "125 yes" "$rc $(says 'ended without a result' && echo yes)"
dir=$("$here/vmtest" -k "$kernel" --fetch)
kernel=$dir/vmlinuz
vm --modules "$(echo "$dir"/modules/*)" -- uname -r
rc=$?
ok "a kernel image by its path" is "0 $(basename "$dir"/modules/*)" "$rc $(cat "$work/out")"
ok "it leaves no process and no directory" is "" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'vmtest.*')"

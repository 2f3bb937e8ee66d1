#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# Pid 1 of the guest after its root is mounted: what systemd would mount, then the command of the control
# directory; its exit code goes there too. It stays pid 1 and reaps orphans.
# shellcheck shell=sh
bb=/run/vmtest/busybox ctl=/run/vmtest/ctl
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "TERM=${TERM:-linux}"
mnt() { # mnt TYPE OPTIONS SOURCE PLACE
	$bb mkdir -p "$4" 2>/dev/null
	$bb mount -t "$1" -o "$2" "$3" "$4" || echo "vmtest: cannot mount $4"
}
enable_all() { # every controller of a v2 hierarchy for its children
	for c in $($bb cat "$1/cgroup.controllers"); do
		echo "+$c" >"$1/cgroup.subtree_control" || echo "vmtest: controller $c stays off"
	done
}

[ ! -e $ctl/has-modules ] || mnt virtiofs ro vmmod "/lib/modules/$($bb uname -r)"
mnt devpts mode=620,ptmxmode=666,gid=5 devpts /dev/pts
mnt tmpfs mode=1777,nosuid,nodev shm /dev/shm
mnt mqueue rw mqueue /dev/mqueue
for n in fd 0:stdin 1:stdout 2:stderr; do
	to=/proc/self/fd
	[ "$n" = fd ] || to=$to/${n%%:*}
	[ -e "/dev/${n#*:}" ] || $bb ln -s "$to" "/dev/${n#*:}"
done
mnt securityfs rw securityfs /sys/kernel/security
mnt debugfs rw debugfs /sys/kernel/debug
mnt tracefs rw tracefs /sys/kernel/tracing
mnt bpf mode=700 bpf /sys/fs/bpf
if [ -e $ctl/hybrid ]; then
	mnt tmpfs mode=755 cgroup /sys/fs/cgroup
	for c in cpu,cpuacct cpuset memory pids blkio devices freezer hugetlb net_cls,net_prio perf_event; do
		# Newer kernels come without some of the v1 controllers.
		$bb mkdir -p /sys/fs/cgroup/$c
		$bb mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c 2>/dev/null || $bb rmdir /sys/fs/cgroup/$c
	done
	mnt cgroup2 nsdelegate cgroup2 /sys/fs/cgroup/unified
	enable_all /sys/fs/cgroup/unified
else
	mnt cgroup2 nsdelegate cgroup2 /sys/fs/cgroup
	enable_all /sys/fs/cgroup
fi
while read -r t d; do
	mnt virtiofs rw "$t" "$d"
done <$ctl/mounts
$bb hostname vmtest
$bb ip link set lo up
while read -r m; do
	[ -z "$m" ] || modprobe "$m" || echo "vmtest: modprobe $m failed"
done <$ctl/modprobe
for p in /sys/class/virtio-ports/*; do
	[ -e "$p/name" ] || continue
	case $($bb cat "$p/name") in
	vmout) out=/dev/${p##*/} ;;
	vmerr) err=/dev/${p##*/} ;;
	esac
done
echo "vmtest: ready $($bb cut -d' ' -f1 /proc/uptime)"
# The root's own sh: busybox's would run its applets instead of the root's programs.
sh=/bin/sh
[ -x $sh ] || sh="$bb sh"
if [ "$($bb cat $ctl/mode)" = shell ]; then
	$sh $ctl/command </dev/ttyS0 >/dev/ttyS0 2>&1
	rc=$?
else
	in=/dev/null
	[ ! -e $ctl/stdin ] || in=$ctl/stdin
	# shellcheck disable=SC2086  # may be two words
	$bb setsid $sh $ctl/command <$in >"$out" 2>"$err" &
	p=$!
	wait $p
	rc=$?
	# Opening and closing a port waits for the host, twice: by then it has the output.
	: >"$out"
	: >"$err"
fi
echo "vmtest: exit $rc"
echo $rc >$ctl/rc.new
$bb mv $ctl/rc.new $ctl/rc
$bb sync
echo b >/proc/sysrq-trigger # at once, and -no-reboot makes QEMU exit; poweroff takes a second
$bb poweroff -f

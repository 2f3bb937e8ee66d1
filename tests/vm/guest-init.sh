#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init of vmtest's initramfs: the host's root read-only with a tmpfs over it, then guest-run.sh from there.
# shellcheck shell=sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
bb=/bin/busybox
n=/r/new
die() {
	echo "vmtest: $*"
	$bb reboot -f
}
$bb mount -t proc proc /proc
$bb mount -t sysfs sys /sys
$bb mount -t devtmpfs dev /dev
while read -r m; do
	$bb insmod "/mod/$m" || echo "vmtest: insmod $m failed"
done </mod/order
$bb mkdir -p /r/root /r/rw $n
$bb mount -t virtiofs -o ro vmroot /r/root || die "cannot mount the root share"
$bb mount -t tmpfs -o mode=755 rw /r/rw && $bb mkdir /r/rw/up /r/rw/work
$bb mount -t overlay -o lowerdir=/r/root,upperdir=/r/rw/up,workdir=/r/rw/work root $n || die "cannot mount the overlay"
for d in proc sys dev run; do
	[ -d $n/$d ] || $bb mkdir -p $n/$d
done
for d in proc sys dev; do
	$bb mount --move /$d $n/$d
done
$bb mount -t tmpfs -o mode=755,nosuid,nodev run $n/run
$bb mkdir -p $n/run/lock $n/run/vmtest/ctl
$bb mount -t virtiofs vmctl $n/run/vmtest/ctl || die "cannot mount the control share"
$bb cp /bin/busybox $n/run/vmtest/busybox
exec $bb switch_root $n /run/vmtest/busybox sh /run/vmtest/ctl/run.sh

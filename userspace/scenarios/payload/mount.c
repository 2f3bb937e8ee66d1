// SPDX-License-Identifier: Apache-2.0
/* Mounts, namespaces and roots: P01 to P11. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/scenarios/payload/payload.h"

#define SYS_OPEN_TREE	  428
#define SYS_MOVE_MOUNT	  429
#define SYS_FSOPEN	  430
#define SYS_MOUNT_SETATTR 442
#define SYS_CLONE3	  435

/* glibc's <sys/mount.h> does not stand beside the kernel's. */
static long do_mount(const char *source, const char *target, const char *type, unsigned long flags,
		     const char *data)
{
	return syscall(SYS_mount, source, target, type, flags, data);
}

static long do_umount(const char *target)
{
	return syscall(SYS_umount2, target, 2 /* MNT_DETACH */);
}

static void try_mount(const char *type, const char *data)
{
	mkdir("/tmp/.mnt", 0700);
	if (tried(do_mount("none", "/tmp/.mnt", type, 0, data), "mount %s", type))
		do_umount("/tmp/.mnt");
}

static void p01(void)
{
	try_mount("tmpfs", NULL);
	try_mount("proc", NULL);
	try_mount("cgroup", "none,name=warder-selftest");
}

static void p01_twin(void)
{
	struct statvfs v;

	did(statvfs("/tmp", &v), "statvfs /tmp");
	did(access("/proc/self/mountinfo", R_OK), "list the mounts");
}

static void p02(void)
{
	tried(do_mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL), "remount /usr writable");
	tried(do_mount(NULL, "/", NULL, MS_REMOUNT, NULL), "remount / writable");
}

static void p02_twin(void)
{
	did(open("/usr/bin/env", O_RDONLY | O_CLOEXEC), "read below /usr");
}

static void p03(void)
{
	tried(do_umount("/proc/sys"), "unmount /proc/sys");
	tried(do_umount("/proc/kcore"), "unmount /proc/kcore");
	tried(do_umount("/usr"), "unmount /usr");
}

static void p04(void)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	tried(syscall(SYS_FSOPEN, "tmpfs", 0), "fsopen");
	tried(syscall(SYS_OPEN_TREE, AT_FDCWD, "/", OPEN_TREE_CLONE), "open_tree");
	tried(syscall(SYS_MOVE_MOUNT, AT_FDCWD, "/tmp", AT_FDCWD, "/workspace", 0), "move_mount");
	tried(syscall(SYS_MOUNT_SETATTR, AT_FDCWD, "/usr", 0, &attr, sizeof(attr)),
	      "mount_setattr");
}

static int do_unshare(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER) < 0 ? errno : 0;
}

static void p05(void)
{
	struct {
		unsigned long long v[11];
	} args = { { CLONE_NEWUSER, 0, 0, 0, SIGCHLD } };
	long r;

	/* In a child: a new namespace must not be ours. */
	r = in_child(do_unshare);
	errno = (int)r;
	tried(r ? -1 : 0, "unshare of a user namespace");
	r = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (r == 0)
		_exit(0);
	tried(r, "clone into a user namespace");
	if (r > 0)
		waitpid((pid_t)r, NULL, 0);
	r = syscall(SYS_CLONE3, &args, 64);
	if (r == 0)
		_exit(0);
	tried(r, "clone3 into a user namespace");
	if (r > 0)
		waitpid((pid_t)r, NULL, 0);
}

static int nothing(void)
{
	return 0;
}

static void p05_twin(void)
{
	did(in_child(nothing), "fork");
	did(run("true", (char *[]){ "true", NULL }), "run a program");
}

static void p06(void)
{
	static const char *const which[] = { "mnt", "net", "pid", "user" };
	char path[64];

	for (size_t i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/1/ns/%s", which[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) { /* then that of its own, to have made the call */
			snprintf(path, sizeof(path), "/proc/self/ns/%s", which[i]);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
		tried(syscall(SYS_setns, fd, 0), "setns %s", path);
		if (fd >= 0)
			close(fd);
	}
}

static void p06_twin(void)
{
	char b[64];

	did(readlink("/proc/self/ns/user", b, sizeof(b)), "which user namespace is this");
}

static void p07(void)
{
	mkdir("/tmp/.root", 0700);
	tried(syscall(SYS_chroot, "/tmp/.root"), "chroot");
	tried(syscall(SYS_chroot, "."), "chroot again");
	tried(syscall(SYS_pivot_root, "/tmp/.root", "/tmp/.root"), "pivot_root");
}

static void p07_twin(void)
{
	mkdir("/tmp/.dir", 0700);
	did(chdir("/tmp/.dir"), "chdir");
	did(chdir("/"), "chdir /");
}

static void p08(void)
{
	struct {
		unsigned int bytes;
		int type;
		unsigned char f[8];
	} h = { 8, 1, { 2 } }; /* inode 2 of an ext4: its root */
	int fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	tried(syscall(SYS_open_by_handle_at, fd, &h, O_RDONLY), "open_by_handle_at, inode 2");
	close(fd);
}

static void p08_twin(void)
{
	did(open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open by name");
}

static void p09(void)
{
	static const char *const disks[] = { "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/dm-0" };
	char sector[512];
	int fd;

	if (tried(mknod("/tmp/.disk", S_IFBLK | 0600, makedev(8, 0)), "mknod of a disk")) {
		fd = open("/tmp/.disk", O_RDONLY | O_CLOEXEC);
		tried(fd < 0 ? fd : read(fd, sector, sizeof(sector)), "read its first sector");
		close(fd);
	}
	for (size_t i = 0; i < sizeof(disks) / sizeof(disks[0]); i++)
		try_open(disks[i], O_RDONLY);
}

static void p09_twin(void)
{
	did(mknod("/tmp/.fifo", S_IFIFO | 0600, 0), "make a fifo");
}

static void p10(void)
{
	try_mount("cgroup", "rdma");
	try_rewrite("/tmp/.mnt/release_agent");
	try_rewrite("/sys/fs/cgroup/rdma/release_agent");
}

static void p11(void)
{
	try_rewrite("/sys/fs/cgroup/devices/devices.allow");
	try_rewrite("/sys/fs/cgroup/devices.allow");
}

static void p11_twin(void)
{
	did(access("/proc/self/cgroup", R_OK), "which control group is this");
}

const struct attempt mount_attempts[] = {
	{ "P01", p01, p01_twin }, { "P02", p02, p02_twin }, { "P03", p03, NULL },
	{ "P04", p04, NULL },	  { "P05", p05, p05_twin }, { "P06", p06, p06_twin },
	{ "P07", p07, p07_twin }, { "P08", p08, p08_twin }, { "P09", p09, p09_twin },
	{ "P10", p10, NULL },	  { "P11", p11, p11_twin }, { 0 },
};

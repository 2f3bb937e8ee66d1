// SPDX-License-Identifier: Apache-2.0
#include "runtime/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

#define RULE_PATH_BENEATH 1
#define VERSION_FLAG	  1u

#define FS_EXECUTE     (1ull << 0)
#define FS_WRITE_FILE  (1ull << 1)
#define FS_READ_FILE   (1ull << 2)
#define FS_READ_DIR    (1ull << 3)
#define FS_REMOVE_DIR  (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_CHAR   (1ull << 6)
#define FS_MAKE_DIR    (1ull << 7)
#define FS_MAKE_REG    (1ull << 8)
#define FS_MAKE_SOCK   (1ull << 9)
#define FS_MAKE_FIFO   (1ull << 10)
#define FS_MAKE_BLOCK  (1ull << 11)
#define FS_MAKE_SYM    (1ull << 12)
#define FS_REFER       (1ull << 13) /* ABI 2 */
#define FS_TRUNCATE    (1ull << 14) /* ABI 3 */
#define FS_IOCTL_DEV   (1ull << 15) /* ABI 5 */

#define FS_ABI1 ((1ull << 13) - 1)
#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define FS_FILE (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
/* Everything but device nodes. */
#define FS_WRITE                                                                      \
	(FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | \
	 FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER | FS_TRUNCATE | FS_IOCTL_DEV)

#define TOP_MAX 256 /* entries of an image's root: each is a rule */

#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL	    (1ull << 1)

struct ruleset_attr {
	uint64_t fs;
	uint64_t net;	 /* ABI 4 */
	uint64_t scoped; /* ABI 6 */
};

struct path_attr {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, VERSION_FLAG);

	return abi > 0 ? (int)abi : 0;
}

/* TCP stays open to the sandbox: there is only lo, and a connect refused here would never be seen
 * by the cgroup hooks that report it. */
static struct ruleset_attr attr_for(int abi)
{
	struct ruleset_attr a = { .fs = FS_ABI1 };

	if (abi >= 2)
		a.fs |= FS_REFER;
	if (abi >= 3)
		a.fs |= FS_TRUNCATE;
	if (abi >= 5)
		a.fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		a.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	return a;
}

static size_t attr_size(int abi)
{
	return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

int landlock_begin(int abi)
{
	struct ruleset_attr attr = attr_for(abi);
	int set = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);

	return set < 0 ? -errno : set;
}

int landlock_allow_fd(int set, int abi, int fd, enum landlock_access what)
{
	static const uint64_t wanted[] = {
		[LANDLOCK_READ] = FS_READ,
		[LANDLOCK_LOOK] = FS_READ & ~FS_EXECUTE,
		[LANDLOCK_WRITE] = FS_READ | FS_WRITE,
	};
	struct path_attr rule = { .access = wanted[what] & attr_for(abi).fs, .fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.access &= FS_FILE;
	return syscall(SYS_landlock_add_rule, set, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int landlock_allow(int set, int abi, const char *path, enum landlock_access what)
{
	auto_close int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : landlock_allow_fd(set, abi, fd, what);
}

int landlock_end(int set)
{
	return syscall(SYS_landlock_restrict_self, set, 0) < 0 ? -errno : 0;
}

/* Of a root that can be written to, all but what the kernel shows in it: a rule for "/" would be one for /proc, too. What
 * is new in "/" itself cannot be written, nor what comes behind TOP_MAX names. */
static int allow_top(int set, int abi)
{
	static const char *const never[] = { ".", "..", "proc", "sys", "dev" };
	auto_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char block[4096] __attribute__((aligned(8))), path[NAME_MAX + 2];
	long n;
	int left = TOP_MAX;

	if (root < 0)
		return -errno;
	while (left > 0 && (n = syscall(SYS_getdents64, root, block, sizeof(block))) > 0) {
		for (long at = 0; at < n && left > 0;) {
			const struct dirent64 *de = (const void *)(block + at);
			bool skip = de->d_type != DT_DIR && de->d_type != DT_REG;
			int r;

			for (size_t i = 0; i < ARRAY_SIZE(never); i++)
				skip |= !strcmp(de->d_name, never[i]);
			at += de->d_reclen;
			if (skip)
				continue;
			snprintf(path, sizeof(path), "/%s", de->d_name);
			r = landlock_allow(set, abi, path, LANDLOCK_WRITE);
			if (r < 0 && r != -ENOENT)
				return r;
			left--;
		}
	}
	return n < 0 ? -errno : 0;
}

int setup_landlock(struct setup *s)
{
	const struct sandbox_plan *p = s->plan;
	int abi = p->host.landlock_abi;
	auto_close int set = -1;
	int r;

	if (abi == 0)
		return 0;
	setup_at(s, "ruleset");
	set = landlock_begin(abi);
	if (set < 0)
		return set;
	setup_at(s, "/");
	r = landlock_allow(set, abi, "/", LANDLOCK_READ);
	for (size_t i = 0; r == 0 && i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];

		if (!op->writable)
			continue;
		setup_at(s, op->target);
		r = op->kind == ROOT_IMAGE ? allow_top(set, abi)
					   : landlock_allow(set, abi, op->target, LANDLOCK_WRITE);
	}
	if (r < 0)
		return r;
	setup_at(s, "restrict_self");
	return landlock_end(set);
}

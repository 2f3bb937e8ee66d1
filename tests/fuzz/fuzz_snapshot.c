// SPDX-License-Identifier: Apache-2.0
/* An archive of a sandbox's files as a new sandbox unpacks it, whoever made it: beside a file that must stay as it is, and
 * with its digest right, which only says that nobody changed it since. */
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/image/internal.h"
#include "userspace/workspace/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int make_place(int dir, const char *name)
{
	int fd = mkdirat(dir, name, 0700) < 0
			 ? -1
			 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

/* Beside both places there is the canary, and nothing else. */
static void check_outside(int dir)
{
	struct stat st;

	if (fstatat(dir, "canary", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size != 0 || st.st_nlink != 1 || fstat(dir, &st) < 0 || st.st_nlink != 4)
		abort();
}

static void unpack(int work, int tmp, const uint8_t *data, size_t size)
{
	const struct workspace_place places[] = { { "/workspace", work }, { "/tmp", tmp } };
	struct archive_facts facts;
	struct err err = { 0 };
	uint8_t sum[crypto_hash_sha256_BYTES];
	int fd = memfd_create("fuzz-snapshot", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	crypto_hash_sha256(sum, data, size);
	if (archive_unpack(&facts, places, 2, sum, fd, &err) == 0) {
		if (facts.stored != size || facts.files > ARCHIVE_FILES_MAX)
			abort();
	} else if (!err.code) {
		abort(); /* a refusal says why */
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rlimit small = { 1 << 20, 1 << 20 };
	char place[] = "/tmp/fuzz-snapshot-XXXXXX";
	int dir, fd, work, tmp;

	/* A hole of 64 GiB is allowed to a file; the disk of who fuzzes is not there for that. */
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	if (!mkdtemp(place))
		return 0;
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, "canary", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		abort();
	close(fd);
	work = make_place(dir, "work");
	tmp = make_place(dir, "tmp");
	unpack(work, tmp, data, size);
	check_outside(dir);
	close(work);
	close(tmp);
	if (tree_remove(AT_FDCWD, place) < 0)
		abort(); /* what we have made we can remove */
	close(dir);
	return 0;
}

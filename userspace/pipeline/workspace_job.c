// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/workspace_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sys.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/confine_calls.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/privdrop.h"

#define MEMORY_MAX (768ull << 20)
#define GRACE_MS   3000 /* besides its own limit, for a file system that does not answer */

int workspace_job_add(struct workspace_job *j, const char *inside, const char *host)
{
	int fd;

	if (j->places_n == WORKSPACE_PLACES_MAX) {
		errno = E2BIG;
		return -E2BIG;
	}
	fd = sys_openat2(AT_FDCWD, host, O_PATH, RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return -errno;
	j->places[j->places_n++] = (struct workspace_place){ inside, fd };
	j->shared_n = j->places_n;
	return 0;
}

void workspace_job_own(struct workspace_job *j, int fd)
{
	if (fd < 0 || j->shared_n == WORKSPACE_PLACES_MAX)
		return;
	j->places[j->shared_n] = (struct workspace_place){ "/workspace", fd };
	j->places_n = j->shared_n + 1;
}

bool workspace_job_busy(const struct workspace_job *j)
{
	return j->busy;
}

void workspace_job_done(struct workspace_job *j)
{
	for (size_t i = 0; i < j->shared_n; i++)
		close(j->places[i].fd);
	if (j->has_before)
		close(j->before_fd);
	*j = (struct workspace_job){ 0 };
}

/* Nothing but reading, whoever's the file is, and nowhere else. */
static int lock_down(const struct workspace_job *j, uid_t uid, gid_t gid)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	struct confine_place places[WORKSPACE_PLACES_MAX] = { 0 };
	struct err err = { 0 };
	int r;

	if (setrlimit(RLIMIT_DATA, &memory) < 0)
		return -errno;
	for (size_t i = 0; i < j->places_n; i++)
		places[i].fd = j->places[i].fd;
	r = privdrop_keep(uid, gid, 1u << CAP_DAC_READ_SEARCH, &err);
	if (r == 0)
		r = confine_files_only(places, j->places_n, &err);
	return r < 0 ? r : confine_calls(CONFINE_LOOK, &err);
}

struct look {
	struct workspace_job *job;
	const struct workspace_limits *limits;
	enum wire_scan_when when; /* 0 = before */
	int out;
	uid_t uid;
	gid_t gid;
};

static int look(const struct look *l)
{
	const struct workspace_job *j = l->job;
	int keep[WORKSPACE_PLACES_MAX + 2], r;
	size_t n = 0;

	for (; n < j->places_n; n++)
		keep[n] = j->places[n].fd;
	keep[n++] = l->out;
	if (j->has_before)
		keep[n++] = j->before_fd;
	r = fd_keep_only(keep, n);
	if (r == 0)
		r = lock_down(j, l->uid, l->gid);
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) /* after the change of user */
		r = -errno;
	if (r < 0)
		return r;
	if (!l->when)
		return workspace_snapshot(j->places, j->places_n, l->limits, l->out);
	return workspace_compare(j->places, j->places_n, l->limits,
				 j->has_before ? j->before_fd : -1, l->when, l->out);
}

/* A process that looks. */
static int start(struct workspace_job *j, const struct look *l)
{
	pid_t pid = fork();
	sigset_t all;
	int r;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		prctl(PR_SET_NAME, "warder-diff", 0, 0, 0);
		r = look(l);
		_exit(r < 0 ? MIN(-r, 255) : 0);
	}
	j->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (j->pidfd < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -errno;
	}
	j->pid = pid;
	j->end = clock_ns(CLOCK_MONOTONIC) + l->limits->time_ns + GRACE_MS * NSEC_PER_MSEC;
	return 0;
}

int workspace_job_timeout(const struct workspace_job *j)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!j->pid)
		return -1;
	return now < j->end ? (int)((j->end - now) / NSEC_PER_MSEC) + 1 : 0;
}

int workspace_job_fd(const struct workspace_job *j)
{
	return j->pid ? j->pidfd : -1;
}

/* Its result; at most until its time is over. */
static int finish(struct workspace_job *j)
{
	struct pollfd pfd = { .fd = j->pidfd, .events = POLLIN };
	pid_t pid = j->pid;
	int status = 0, r;

	do {
		r = poll(&pfd, 1, workspace_job_timeout(j));
	} while (r < 0 && errno == EINTR);
	j->pid = 0;
	close(j->pidfd);
	if (r <= 0) {
		/* One that hangs in a dead file system is left to be reaped by whoever comes after us. */
		kill(pid, SIGKILL);
		waitpid(pid, &status, WNOHANG);
		return -ETIMEDOUT;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int memory_file(struct err *err)
{
	int fd = memfd_create("warder-workspace", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? err_set(err, errno, "workspace: memory file: %m") : fd;
}

static struct workspace_limits limits_of(const struct workspace_job *j,
					 const struct workspace_limits *l)
{
	struct workspace_limits ret = *l;

	if (j->keep_texts) {
		ret.text_file = WORKSPACE_TEXT_FILE;
		ret.text_bytes = WORKSPACE_TEXT_BYTES;
	}
	return ret;
}

int workspace_job_before(struct workspace_job *j, uid_t uid, gid_t gid, struct err *err)
{
	const struct workspace_limits limits = limits_of(j, &workspace_limits_before);
	auto_close int fd = -1;
	int r;

	if (!j->places_n)
		return 0;
	fd = memory_file(err);
	if (fd < 0)
		return take_fd(fd);
	r = start(j, &(struct look){ j, &limits, 0, fd, uid, gid });
	if (r == 0)
		r = finish(j);
	if (r < 0)
		return err_set(err, r, "workspace: looking at it before the start: %m");
	j->before_fd = take_fd(fd);
	j->has_before = true;
	return 0;
}

/* A scan without changes. `why`: what made it one; NULL = there are none. */
static int tell_scan(const struct workspace_job *j, const char *why, int fd)
{
	struct wire_scan w = {
		.h = { .kind = WIRE_WORKSPACE_SCAN,
		       .ts = clock_boot_ns(),
		       .nr = WIRE_NR_NONE,
		       .ring = WIRE_RING_NONE,
		       .vantage = WIRE_V_RUNTIME },
		.when = j->when,
		.skipped = why ? j->places_n : 0,
	};
	auto_buf struct buf out = { 0 }, rec = { 0 };

	buf_add(&rec, &w, sizeof(w));
	for (size_t i = 0; i < j->places_n && i < WORKSPACE_PLACES_MAX; i++) {
		w.places.off = sizeof(w);
		buf_add(&rec, j->places[i].inside, strlen(j->places[i].inside) + 1);
		w.places.len = (uint16_t)(rec.n - sizeof(w));
	}
	if (why) {
		w.why = (struct wire_str){ (uint16_t)rec.n, (uint16_t)(strlen(why) + 1) };
		buf_add(&rec, why, strlen(why) + 1);
	}
	while (rec.n % 8)
		buf_addc(&rec, 0);
	if (rec.failed || rec.n > UINT16_MAX)
		return -ENOMEM;
	w.h.len = (uint32_t)rec.n;
	memcpy(rec.p, &w, sizeof(w));
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	workspace_item_add(&out, fd, WORKSPACE_RECORD, rec.p, rec.n);
	return workspace_items_flush(&out, fd);
}

/* Its own and empty, as most are: nobody has to look. */
static bool is_nothing(const struct workspace_job *j)
{
	auto_dir DIR *dir = NULL;
	struct dirent *de;
	int fd;

	if (j->shared_n)
		return false;
	if (!j->places_n)
		return true;
	fd = openat(j->places[0].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((de = readdir(dir)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			return false;
	return true;
}

int workspace_job_begin(struct workspace_job *j, enum wire_scan_when when, uid_t uid, gid_t gid,
			struct err *err)
{
	const struct workspace_limits limits = limits_of(j, &workspace_limits_after);
	int fd, r;

	if (workspace_job_busy(j))
		return err_set(err, EBUSY, "workspace: it is being compared");
	fd = memory_file(err);
	if (fd < 0)
		return fd;
	j->when = when;
	r = is_nothing(j) ? tell_scan(j, NULL, fd)
			  : start(j, &(struct look){ j, &limits, when, fd, uid, gid });
	if (r < 0) {
		close(fd);
		return err_set(err, r, "workspace: comparing it: %m");
	}
	j->items_fd = fd;
	j->busy = true;
	return 0;
}

/* Instead of all that a process that died has found: half a comparison is none. */
int workspace_job_end(struct workspace_job *j, int *ret_items, struct err *err)
{
	auto_close int fd = j->items_fd;
	int r = j->pid ? finish(j) : 0;

	j->busy = false;
	if (r < 0)
		r = tell_scan(j, r == -ETIMEDOUT ? "time" : "failed", fd);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "workspace: comparing it: %m");
	*ret_items = take_fd(fd);
	return 0;
}

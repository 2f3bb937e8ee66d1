// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/snapshot_job.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/abi/wire.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/record.h"
#include "userspace/pipeline/confine_calls.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/workspace/archive.h"

#define FREEZE_MS  10000
#define RESTORE_MS 600000
#define MEMORY_MAX (512ull << 20)
#define PROCESSES  "/processes"

struct snapshot_shared {
	int result;
	bool written;	    /* the runtime says that all bytes of what runs are in the pipe */
	uint64_t processes; /* bytes, and their digest */
	uint8_t processes_sha256[32];
	struct archive_facts facts;
	struct err err;
};

static struct snapshot_shared *share(void)
{
	void *p = mmap(NULL, sizeof(struct snapshot_shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* What a process wrote that had hostile bytes to read: one line of text. */
static int take_error(struct snapshot_shared *shared, int r, struct err *err)
{
	shared->err.text[sizeof(shared->err.text) - 1] = 0;
	for (char *p = shared->err.text; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			*p = '?';
	return err_set(err, r, "%s", shared->err.text[0] ? shared->err.text : strerror(-r));
}

/* ---- taking one ---- */

static bool is_frozen(int events)
{
	char text[256];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return strstr(text, "frozen 1") != NULL;
}

static int wait_frozen(int events)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + FREEZE_MS * NSEC_PER_MSEC;

	while (!is_frozen(events)) {
		struct pollfd p = { .fd = events, .events = POLLPRI };

		if (clock_ns(CLOCK_MONOTONIC) >= end)
			return -ETIMEDOUT;
		poll(&p, 1, 5); /* the kernel does not tell of each change at once */
	}
	return 0;
}

struct pack {
	struct sandbox_dir dirs[SANDBOX_DIRS_MAX];
	size_t n;
	int events, out;
	int from, processes; /* what the runtime writes of what runs, and where it goes; -1 */
	uint64_t max;
	uid_t uid;
	gid_t gid;
};

/* More to read. Not so when all is said to be written and whoever wrote stands still: gVisor answers before it closes
 * its end, and may have been stopped in between. */
static bool has_more(const struct pack *p, const struct snapshot_shared *shared)
{
	for (;;) {
		bool last =
			__atomic_load_n(&shared->written, __ATOMIC_ACQUIRE) && is_frozen(p->events);
		struct pollfd fd = { .fd = p->from, .events = POLLIN };

		if (poll(&fd, 1, last ? 0 : 20) > 0)
			return true;
		if (last)
			return false;
	}
}

/* Bytes of somebody who may be in the guest's hands: they are counted, and not looked at. */
static int copy_processes(const struct pack *p, struct snapshot_shared *shared)
{
	static uint8_t bytes[65536];
	crypto_hash_sha256_state st;
	uint64_t all = 0;
	ssize_t n;
	int r = 0;

	crypto_hash_sha256_init(&st);
	while (r == 0 && has_more(p, shared) && (n = read(p->from, bytes, sizeof(bytes))) != 0) {
		if (n < 0)
			return err_set(&shared->err, errno, "snapshot: processes: %m");
		all += (size_t)n;
		if (all > p->max)
			return err_set(&shared->err, EFBIG,
				       "snapshot: its processes are more than may be kept");
		crypto_hash_sha256_update(&st, bytes, (size_t)n);
		r = fd_write_all(p->processes, (const char *)bytes, (size_t)n);
	}
	crypto_hash_sha256_final(&st, shared->processes_sha256);
	shared->processes = all;
	return r < 0 ? err_set(&shared->err, -r, "snapshot: processes: %m") : 0;
}

static int pack(const struct pack *p, struct snapshot_shared *shared)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	struct workspace_place places[SANDBOX_DIRS_MAX];
	struct confine_place only[SANDBOX_DIRS_MAX] = { 0 };
	int keep[SANDBOX_DIRS_MAX + 4], r;

	for (size_t i = 0; i < p->n; i++) {
		places[i] = (struct workspace_place){ p->dirs[i].inside, p->dirs[i].fd };
		keep[i] = only[i].fd = p->dirs[i].fd;
	}
	keep[p->n] = p->out;
	keep[p->n + 1] = p->events;
	keep[p->n + 2] = p->from;
	keep[p->n + 3] = p->processes;
	r = fd_keep_only(keep, p->n + (p->from < 0 ? 2 : 4));
	if (r == 0 && setrlimit(RLIMIT_DATA, &memory) < 0)
		r = -errno;
	if (r == 0)
		r = privdrop_keep(p->uid, p->gid, 1u << CAP_DAC_READ_SEARCH, &shared->err);
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = confine_files_only(only, p->n, &shared->err);
	if (r == 0)
		r = confine_calls(CONFINE_LOOK, &shared->err);
	if (r == 0 && p->from >= 0)
		r = copy_processes(p, shared);
	if (r < 0)
		return r;
	r = wait_frozen(p->events);
	if (r == -ETIMEDOUT)
		return err_set(&shared->err, ETIMEDOUT,
			       "snapshot: the sandbox does not stand still");
	if (r == 0)
		r = archive_pack(&shared->facts, places, p->n, p->max - shared->processes, p->out,
				 &shared->err);
	if (r == 0 && !is_frozen(p->events))
		r = err_set(&shared->err, EAGAIN,
			    "snapshot: the sandbox was let go on while it was taken");
	return r;
}

static int start(struct snapshot_job *j, const struct pack *p, struct err *err)
{
	sigset_t all;

	j->pid = fork();
	if (j->pid < 0)
		return err_set(err, errno, "snapshot: fork: %m");
	if (j->pid == 0) {
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		prctl(PR_SET_NAME, "warder-pack", 0, 0, 0);
		j->shared->result = pack(p, j->shared);
		_exit(j->shared->result < 0);
	}
	j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
	if (j->pidfd >= 0)
		return 0;
	kill(j->pid, SIGKILL);
	waitpid(j->pid, NULL, 0);
	return err_set(err, errno, "snapshot: %m");
}

static int freeze(const struct sandbox *s, struct err *err)
{
	if (pwrite(sandbox_freeze_fd(s), "1", 1, 0) != 1)
		return err_set(err, errno, "snapshot: cgroup.freeze: %m");
	return 0;
}

/* The other end of the pipe is the runtime's alone: its end is the end of the bytes. */
static int write_processes(struct snapshot_job *j, struct sandbox *s, struct pack *p,
			   struct err *err)
{
	int ends[2], r = snapshots_add_processes(&j->file, err);

	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, errno, "snapshot: pipe: %m");
	p->from = ends[0];
	p->processes = j->file.processes;
	r = sandbox_checkpoint(s, ends[1], err);
	close(ends[1]);
	return r;
}

int snapshot_job_written(struct snapshot_job *j, const struct sandbox *s, struct err *err)
{
	j->written = true;
	__atomic_store_n(&j->shared->written, true, __ATOMIC_RELEASE);
	return freeze(s, err);
}

int snapshot_job_begin(struct snapshot_job *j, struct sandbox *s, const char *tenant,
		       const char *name, uint64_t max, uid_t uid, gid_t gid, struct err *err)
{
	struct pack p = {
		.events = -1, .from = -1, .processes = -1, .max = max, .uid = uid, .gid = gid
	};
	int r;

	if (j->busy)
		return err_set(err, EBUSY, "a snapshot of this sandbox is being taken");
	p.n = sandbox_dirs(s, p.dirs);
	if (!p.n)
		return err_set(err, EOPNOTSUPP, "snapshot: this backend does not give its files");
	r = snapshots_begin(&j->file, tenant, name, err);
	if (r < 0)
		return r;
	j->shared = share();
	p.out = j->file.file;
	p.events = openat(sandbox_cgroup_fd(s), "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (!j->shared || p.events < 0)
		r = err_set(err, errno, "snapshot: %m");
	if (r == 0)
		r = j->processes ? write_processes(j, s, &p, err) : freeze(s, err);
	j->let_go = j->written = false;
	if (r == 0)
		r = start(j, &p, err);
	if (p.events >= 0)
		close(p.events);
	if (p.from >= 0)
		close(p.from);
	j->busy = true;
	if (r < 0) {
		j->pid = 0;
		snapshot_job_drop(j);
	}
	return r;
}

bool snapshot_job_has_failed(const struct snapshot_job *j)
{
	return j->busy && j->shared->result < 0;
}

int snapshot_job_fd(const struct snapshot_job *j)
{
	return j->busy ? j->pidfd : -1;
}

static int reap(struct snapshot_job *j, struct err *err)
{
	int status = 0, r;

	while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
		;
	j->pid = 0;
	close(take_fd(j->pidfd));
	r = j->shared->result;
	if (!WIFEXITED(status))
		return err_set(err, EIO, "snapshot: who packed it was killed");
	if (WEXITSTATUS(status) || r < 0)
		return take_error(j->shared, r < 0 ? r : -EIO, err);
	return 0;
}

int snapshot_job_end(struct snapshot_job *j, const struct sandbox *s, struct err *err)
{
	auto_close int events = openat(sandbox_cgroup_fd(s), "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct snapshots_row *row = &j->file.row;
	int r = reap(j, err);

	if (r == 0 && (j->let_go || events < 0 || !is_frozen(events)))
		r = err_set(err, EAGAIN, "snapshot: the sandbox was let go on while it was taken");
	if (r == 0) {
		row->created_ns = clock_real_ns();
		row->files = j->shared->facts.files;
		row->bytes = j->shared->facts.bytes;
		row->stored = j->shared->facts.stored;
		row->processes = j->shared->processes;
		memcpy(row->processes_sha256, j->shared->processes_sha256,
		       sizeof(row->processes_sha256));
		memcpy(row->sha256, j->shared->facts.sha256, sizeof(row->sha256));
		r = snapshots_commit(&j->file, err);
	}
	snapshot_job_drop(j);
	return r;
}

void snapshot_job_drop(struct snapshot_job *j)
{
	if (!j->busy)
		return;
	if (j->pid) {
		kill(j->pid, SIGKILL);
		waitpid(j->pid, NULL, 0);
		close(take_fd(j->pidfd));
		j->pid = 0;
	}
	snapshots_done(&j->file);
	if (j->shared)
		munmap(j->shared, sizeof(*j->shared));
	j->shared = NULL;
	j->busy = false;
}

/* ---- the way back ---- */

struct fill {
	struct snapshot_shared *shared;
	const struct snapshots_row *row;
	int fd;
};

static int fill(void *arg, const struct sandbox_dir *dirs, size_t n)
{
	struct workspace_place places[SANDBOX_DIRS_MAX];
	struct fill *f = arg;

	for (size_t i = 0; i < n; i++)
		places[i] = (struct workspace_place){ dirs[i].inside, dirs[i].fd };
	return archive_unpack(&f->shared->facts, places, n, f->row->sha256, f->fd, &f->shared->err);
}

int snapshot_restore(struct sandbox *s, const struct snapshots_row *row, int fd, struct err *err)
{
	struct fill f = { share(), row, fd };
	struct err own = { 0 };
	int r;

	if (!f.shared)
		return err_set(err, ENOMEM, "snapshot: %m");
	r = sandbox_fill(s, fill, &f, fd, RESTORE_MS, &own);
	if (r < 0 && own.code)
		err_set(err, r, "snapshot '%s': %s", row->name, err_text(&own));
	else if (r < 0)
		take_error(f.shared, r, err);
	munmap(f.shared, sizeof(*f.shared));
	return r;
}

/* ---- records ---- */

static struct wire_str tail(struct buf *out, const char *z)
{
	return record_tail(out, z, strlen(z));
}

int record_snapshot(struct buf *out, uint32_t sandbox_id, const struct snapshots_row *row,
		    const char *who, bool is_restore, bool processes, int r)
{
	char name[sizeof(row->name) + sizeof(PROCESSES)];
	struct wire_snapshot w = {
		.h = record_header(sandbox_id,
				   is_restore ? WIRE_SESSION_RESTORE : WIRE_SESSION_SNAPSHOT),
		.files = processes ? 0 : row->files,
		.bytes = processes ? row->processes : row->bytes,
		.stored = processes ? row->processes : row->stored,
	};

	w.h.ret = r;
	memcpy(w.sha256, processes ? row->processes_sha256 : row->sha256, sizeof(w.sha256));
	snprintf(name, sizeof(name), "%s%s", row->name, processes ? PROCESSES : "");
	buf_reset(out);
	buf_add(out, &w, sizeof(w));
	w.name = tail(out, name);
	w.session = is_restore ? tail(out, row->session) : (struct wire_str){ 0, 0 };
	w.who = tail(out, who);
	return record_finish(out, &w, sizeof(w));
}

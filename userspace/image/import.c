// SPDX-License-Identifier: Apache-2.0
/* The root side of an import: a place to unpack in, the process that does it, and the rename that makes it an image. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <locale.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/image/internal.h"
#include "userspace/image/store.h"

#define MEMORY_MAX (1ull << 30)
#define FILES_MAX  256
#define SRC_DIR	   "in"

/* ---- the process that unpacks ---- */

/* Files of one directory tree, memory, and nothing else: no exec, sockets, processes, mounts, nor files by handle. */
static const int allowed_calls[] = {
	SCMP_SYS(read),	      SCMP_SYS(pread64),	SCMP_SYS(readv),
	SCMP_SYS(write),      SCMP_SYS(pwrite64),	SCMP_SYS(writev),
	SCMP_SYS(close),      SCMP_SYS(openat),		SCMP_SYS(openat2),
	SCMP_SYS(open),	      SCMP_SYS(fstat),		SCMP_SYS(newfstatat),
	SCMP_SYS(stat),	      SCMP_SYS(lstat),		SCMP_SYS(statx),
	SCMP_SYS(lseek),      SCMP_SYS(mkdirat),	SCMP_SYS(symlinkat),
	SCMP_SYS(linkat),     SCMP_SYS(unlinkat),	SCMP_SYS(fchmod),
	SCMP_SYS(fchmodat),   SCMP_SYS(utimensat),	SCMP_SYS(getdents64),
	SCMP_SYS(ftruncate),  SCMP_SYS(readlinkat),	SCMP_SYS(fcntl),
	SCMP_SYS(dup),	      SCMP_SYS(fadvise64),	SCMP_SYS(brk),
	SCMP_SYS(mmap),	      SCMP_SYS(munmap),		SCMP_SYS(mremap),
	SCMP_SYS(madvise),    SCMP_SYS(mprotect),	SCMP_SYS(futex),
	SCMP_SYS(getrandom),  SCMP_SYS(clock_gettime),	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),	      SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(getpid),     SCMP_SYS(gettid),		SCMP_SYS(getuid),
	SCMP_SYS(geteuid),    SCMP_SYS(umask),		SCMP_SYS(restart_syscall),
	SCMP_SYS(exit_group), SCMP_SYS(exit),
};

static int lock_in(struct err *err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(allowed_calls); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed_calls[i], 0);
	if (r == 0)
		r = seccomp_load(ctx);
	if (ctx)
		seccomp_release(ctx);
	return r < 0 ? err_set(err, -r, "system call filter of the import: %m") : 0;
}

/* A directory to read from comes as a mount of its own, read-only; then there is no way to anywhere else. */
static int hang_source(int *in, int stage, struct err *err)
{
	if ((mkdirat(stage, SRC_DIR, 0755) < 0 && errno != EEXIST) ||
	    move_mount(*in, "", stage, SRC_DIR, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(err, errno, "directory to import: %m");
	close(take_fd(*in));
	return 0;
}

/* By way of the working directory: what was open belongs to the host's mounts. */
static int own_namespaces(int *stage, struct err *err)
{
	if (fchdir(*stage) < 0 ||
	    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(err, errno, "namespaces of the import: %m");
	close(take_fd(*stage));
	*stage = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *stage < 0 ? err_set(err, errno, "place of the import: %m") : 0;
}

static int confine(int *in, int *stage, bool is_dir, const struct image_import *what,
		   struct err *err)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX }, files = { FILES_MAX, FILES_MAX };
	char sum[IMAGE_DIGEST_LEN + 1];
	int r = 0;

	umask(0);
	/* Names beyond ASCII, and what the libraries load once: as long as there is a root to load it from. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		(void)setlocale(LC_CTYPE, "");
	if (digest_of(sum, "", 0) < 0)
		return err_set(err, EIO, "SHA-256 is not to be had");
	if (!what->drop)
		return 0;
	r = own_namespaces(stage, err);
	if (r == 0 && is_dir)
		r = hang_source(in, *stage, err);
	if (r < 0)
		return r;
	if (fchdir(*stage) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_set(err, errno, "root of the import: %m");
	close(take_fd(*stage));
	*stage = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (is_dir)
		*in = open("/" SRC_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*stage < 0 || *in < 0 || setrlimit(RLIMIT_AS, &memory) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_set(err, errno, "import: %m");
	/* The blobs of a layout may be its owner's alone. */
	r = what->drop(IMAGE_OWNER, IMAGE_OWNER, is_dir ? 1u << CAP_DAC_READ_SEARCH : 0, err);
	return r < 0 ? r : lock_in(err);
}

static void tell(int out, const struct image *im, int r, const struct err *err)
{
	auto_buf struct buf text = { 0 };

	buf_init(&text, IMAGE_META_MAX);
	if (r < 0) {
		buf_printf(&text, "-%d %s", -r, err_text(err));
	} else {
		buf_addc(&text, '+');
		if (image_write(im, &text) < 0) {
			buf_reset(&text);
			buf_printf(&text, "-%d the image's configuration is too large", E2BIG);
		}
	}
	(void)!fd_write_all(out, text.p, text.n);
}

static void work(int in, int stage, int out, bool is_dir, const struct image_import *what,
		 pid_t parent)
{
	struct err err = { 0 };
	struct image im;
	int keep[] = { in, stage, out };
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	r = fd_keep_only(keep, ARRAY_SIZE(keep));
	if (r == 0)
		r = confine(&in, &stage, is_dir, what, &err);
	image_init(&im);
	if (r == 0)
		r = image_work(&im, in, stage, what, &err);
	tell(out, &im, r, &err);
	_exit(0);
}

/* What the process said: it has read hostile bytes, so that is one more text to be checked. */
static int hear(struct image *im, int fd, int status, struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = fd_read_text(fd, IMAGE_META_MAX, &text, &n);

	if (r < 0)
		return err_set(err, r, "import: %m");
	if (n && text[0] == '-') {
		char *end;
		long code = strtol(text + 1, &end, 10);

		for (char *c = end; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				*c = '?';
		return err_set(err, code > 0 && code < 4096 ? (int)code : EIO, "%s",
			       *end ? end + 1 : "import failed");
	}
	if (!n || text[0] != '+')
		return err_set(err, EIO, "import: its process ended by signal %d without a word",
			       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return image_read(im, "import", (struct str){ text + 1, n - 1 }, err);
}

static int unpack(struct image *im, int in, int stage, const struct image_import *what,
		  struct err *err)
{
	pid_t pid, parent = getpid();
	int pair[2], status = 0, r;
	struct stat st;

	if (fstat(in, &st) < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, errno, "import: %m");
	pid = fork();
	if (pid == 0)
		work(in, stage, pair[1], S_ISDIR(st.st_mode), what, parent);
	close(pair[1]);
	if (pid < 0) {
		r = err_set(err, errno, "import: fork: %m");
	} else {
		/* The reading ends when it ends. */
		r = hear(im, pair[0], 0, err);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (r == -EIO && WIFSIGNALED(status))
			r = err_set(err, EIO, "import: its process ended by signal %d",
				    WTERMSIG(status));
	}
	close(pair[0]);
	return r;
}

/* ---- and what is made of it ---- */

/* A directory becomes a mount that is nowhere yet. */
static int detach(int fd, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	auto_close int tree =
		open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(err, errno, "directory to import: %m");
	return take_fd(tree);
}

static int open_source(const struct image_import *what, struct err *err)
{
	const char *path = what->source;
	auto_close int fd = !strcmp(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
					       : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "'%s': %m", path);
	return S_ISDIR(st.st_mode) && what->drop ? detach(fd, err) : take_fd(fd);
}

static int write_meta(const struct image *im, int stage, struct err *err)
{
	auto_buf struct buf text = { 0 };
	int r;

	buf_init(&text, IMAGE_META_MAX);
	r = image_write(im, &text);
	if (r == 0)
		r = file_replace_at(stage, "meta.json", text.p, text.n, 0644);
	/* All of its files before the name that says that it is there. */
	if (r == 0 && syncfs(stage) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "image: %m") : 0;
}

int image_import(struct image *im, bool *ret_known, const char *state,
		 const struct image_import *what, struct err *err)
{
	struct image_store store = IMAGE_STORE_INIT;
	struct image_stage stage = IMAGE_STAGE_INIT;
	auto_close int in = -1;
	int r = what->name ? image_check_name(what->name, err) : 0;

	if (r < 0)
		return r;
	in = open_source(what, err);
	if (in < 0)
		return take_fd(in);
	r = image_store_open(&store, state, true, err);
	if (r == 0)
		r = image_stage_new(&stage, &store, err);
	if (r == 0)
		r = unpack(im, in, stage.work, what, err);
	if (r == 0)
		r = image_stage_take(&stage, err);
	if (r == 0) {
		im->imported_ns = clock_ns(CLOCK_REALTIME);
		r = write_meta(im, stage.dir, err);
	}
	if (r == 0)
		r = image_stage_commit(&stage, &store, im->digest, ret_known, err);
	image_stage_done(&stage, &store);
	if (r == 0 && what->name)
		r = image_store_name(&store, what->name, im->digest, err);
	image_store_done(&store);
	return r;
}

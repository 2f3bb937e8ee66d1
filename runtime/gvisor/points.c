// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/points.h"

#include <errno.h>
#include <stdio.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"

/* Context told with a message. Who it was goes with all of them. */
#define CWD	  0x1 /* names may be relative to it */
#define CONTAINER 0x2

struct point {
	const char *name;
	const char *optional; /* field beyond the usual ones */
	unsigned context;
};

/* What is not here is not seen: runtime/README.md says what each need gets. */
static const struct point points[] = {
	{ "container/start", "env", CWD | CONTAINER },
	{ "sentry/clone", NULL, CWD },
	{ "sentry/execve", "binary_info", CWD },
	{ "sentry/task_exit", NULL, 0 },
	/* those that failed */
	{ "syscall/execve/exit", NULL, CWD },
	{ "syscall/execveat/exit", "fd_path", CWD },
	{ "syscall/open/exit", NULL, CWD },
	{ "syscall/creat/exit", NULL, CWD },
	{ "syscall/openat/exit", "fd_path", CWD },
	{ "syscall/write/exit", "fd_path", 0 },
	{ "syscall/writev/exit", "fd_path", 0 },
	{ "syscall/pwrite64/exit", "fd_path", 0 },
	{ "syscall/pwritev/exit", "fd_path", 0 },
	{ "syscall/pwritev2/exit", "fd_path", 0 },
	{ "syscall/dup2/exit", "fd_path", 0 },
	{ "syscall/dup3/exit", "fd_path", 0 },
	{ "syscall/socket/exit", NULL, 0 },
	{ "syscall/connect/exit", "fd_path", CWD },
	{ "syscall/bind/exit", "fd_path", CWD },
	{ "syscall/accept/exit", "fd_path", CWD },
	{ "syscall/accept4/exit", "fd_path", CWD },
	/* those that a limit refused */
	{ "syscall/clone/exit", NULL, 0 },
	{ "syscall/fork/exit", NULL, 0 },
	{ "syscall/vfork/exit", NULL, 0 },
	{ "syscall/chroot/enter", NULL, CWD },
	{ "syscall/chroot/exit", NULL, CWD },
};

/* Calls of which nothing but the number and the result is told. Enter is asked for, too: what goes with the exit is
 * taken from the enter point's configuration (a fault in 20221219 and 20240729), and of those that never return, the
 * enter is all there is. */
static const uint16_t raw[] = {
	59,  322,	    /* execve, execveat: that there was one, however large */
	40,  326, 275,	    /* sendfile, copy_file_range, splice */
	44,  46,  307,	    /* sendto, sendmsg, sendmmsg */
	50,		    /* listen */
	76,  77,	    /* truncate, ftruncate */
	82,  264, 316,	    /* rename, renameat, renameat2 */
	83,  258,	    /* mkdir, mkdirat */
	84,  87,  263,	    /* rmdir, unlink, unlinkat */
	86,  265, 88,  266, /* link, linkat, symlink, symlinkat */
	90,  91,  268,	    /* chmod, fchmod, fchmodat */
	92,  93,  94,  260, /* chown, fchown, lchown, fchownat */
	188, 189, 190,	    /* setxattr, lsetxattr, fsetxattr */
	103,		    /* syslog */
	133, 259,	    /* mknod, mknodat */
	101, 310, 311, 440, /* ptrace, process_vm_readv, process_vm_writev, process_madvise */
	155, 165, 166,	    /* pivot_root, mount, umount2 */
	272, 308,	    /* unshare, setns */
	428, 429, 430, 431, 432, 433, 442, /* the mount API of file descriptors */
	135, 163, 164, 167, 168, 169, /* personality, acct, settimeofday, swapon, swapoff, reboot */
	172, 173, 175, 176, 313,      /* iopl, ioperm, init_module, delete_module, finit_module */
	157, 317, /* prctl, seccomp: from then on calls may end without the kernel's doing */
	227, 246, 248, 249, 250, /* clock_settime, kexec_load, add_key, request_key, keyctl */
	298, 300, 304, 320, 321, 323, /* perf_event_open, fanotify_init, open_by_handle_at, kexec_file_load, bpf,
					 userfaultfd */
	319, 425, 426, 427, 435, 438, /* memfd_create, io_uring_*, clone3, pidfd_getfd */
};

bool gvisor_points_raw(uint64_t sysno)
{
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++)
		if (raw[i] == sysno)
			return true;
	return false;
}

static void put_point(struct json *j, const struct point *p)
{
	static const char *const who[] = { "time",	  "thread_id",
					   "group_id",	  "thread_group_start_time",
					   "credentials", "process_name" };

	json_object_begin(j);
	json_key(j, "name");
	json_strz(j, p->name);
	if (p->optional) {
		json_key(j, "optional_fields");
		json_array_begin(j);
		json_strz(j, p->optional);
		json_array_end(j);
	}
	json_key(j, "context_fields");
	json_array_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(who); i++)
		json_strz(j, who[i]);
	if (p->context & CWD)
		json_strz(j, "cwd");
	if (p->context & CONTAINER)
		json_strz(j, "container_id");
	json_array_end(j);
	json_object_end(j);
}

static void put_raw(struct json *j, uint16_t sysno, const char *when)
{
	char name[40];
	const struct point p = { .name = name, .context = CWD };

	snprintf(name, sizeof(name), "syscall/sysno/%u/%s", sysno, when);
	put_point(j, &p);
}

static void put_sink(struct json *j, const char *endpoint)
{
	json_object_begin(j);
	json_key(j, "name");
	json_strz(j, GVISOR_SINK);
	json_key(j, "ignore_setup_error");
	json_bool(j, false);
	json_key(j, "config");
	json_object_begin(j);
	json_key(j, "endpoint");
	json_strz(j, endpoint);
	json_key(j, "retries");
	json_u64(j, GVISOR_SINK_RETRIES);
	json_key(j, "backoff");
	json_strz(j, "25us");
	json_key(j, "backoff_max");
	json_strz(j, "10ms");
	json_object_end(j);
	json_object_end(j);
}

int gvisor_points_json(struct buf *out, const char *endpoint)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "trace_session");
	json_object_begin(&j);
	json_key(&j, "name");
	json_strz(&j, GVISOR_SESSION);
	/* A point that this runsc does not have would otherwise leave the sandbox without any: gVisor then says so
	 * in its log and goes on. */
	json_key(&j, "ignore_missing");
	json_bool(&j, true);
	json_key(&j, "points");
	json_array_begin(&j);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		put_point(&j, &points[i]);
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
		put_raw(&j, raw[i], "enter");
		if (raw[i] != 59 && raw[i] != 322)
			put_raw(&j, raw[i], "exit");
	}
	json_array_end(&j);
	json_key(&j, "sinks");
	json_array_begin(&j);
	put_sink(&j, endpoint);
	json_array_end(&j);
	json_object_end(&j);
	json_object_end(&j);
	return out->failed ? -ENOMEM : 0;
}

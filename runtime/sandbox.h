/* SPDX-License-Identifier: Apache-2.0 */
/* Launching and holding a sandbox. spec (what was asked) -> plan (pure, printable) -> sandbox. Runs as
 * root; knows nothing of events, rules or the journal: what happens is told in struct sandbox_report. */
#ifndef WARDER_RUNTIME_SANDBOX_H
#define WARDER_RUNTIME_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "userspace/base/err.h"

#define SANDBOX_MOUNTS_MAX 64
#define SANDBOX_ENV_MAX	   256
#define SANDBOX_NAME_MAX   63

#define SECRET_DIR		"/run/secrets" /* inside; a file each */
#define SANDBOX_SECRETS_MAX	16
#define SANDBOX_SECRET_MAX	(16 * 1024) /* bytes of one */
#define SANDBOX_SECRET_NAME_MAX 40

/* ALLOW: names and ports of a list. OPEN: everything but private addresses. HOST: unsafe. */
/* GIVEN: a namespace that others made and look after (a container tool's). */
enum sandbox_net {
	SANDBOX_NET_NONE,
	SANDBOX_NET_HOST,
	SANDBOX_NET_ALLOW,
	SANDBOX_NET_OPEN,
	SANDBOX_NET_GIVEN
};
#define SANDBOX_NET_MAX 64 /* entries of each list */

struct sandbox_bind {
	const char *source;
	const char *target;
	bool writable;
};

struct sandbox_secret {
	const char *name;
	const char *value; /* never in a plan's text, nor in its hash */
	size_t n;
	uint64_t ttl_ns; /* from when the payload runs; 0 = as long as the sandbox */
};

struct sandbox_limits {
	uint64_t memory;     /* bytes; 0 = none */
	uint64_t pids;	     /* 0 = none */
	uint64_t cpu_milli;  /* thousandths of a CPU; 0 = none */
	uint64_t timeout_ns; /* wall; 0 = none */
	uint64_t tmp_bytes;  /* size of each private tmpfs */
	uint64_t disk;	     /* size of the workspace tmpfs */
	uint64_t nofile;
	uint64_t fsize; /* 0 = none */
};

/* http://NAME/ inside is this upstream, with headers that are added outside. */
#define SANDBOX_ROUTES_MAX	  8
#define SANDBOX_ROUTE_HEADERS_MAX 4
struct sandbox_route {
	const char *name, *url; /* https://HOST[:PORT][/PREFIX] */
	const char *to;		/* IP[:PORT] to dial in its place; NULL = its name is resolved */
	const char *ca;		/* PEM of who may certify it; NULL = whom the host trusts */
	size_t headers;
	struct {
		const char *name;
		const char *value; /* never in a plan's text, nor in its hash */
	} header[SANDBOX_ROUTE_HEADERS_MAX];
};

/* ---- a container of somebody's: `root` and env are all there is, with nothing of ours in it ---- */

#define SANDBOX_TMPFS_MAX   16
#define SANDBOX_PROC_MAX    64
#define SANDBOX_SYSCTLS_MAX 16
#define SANDBOX_RLIMITS_MAX 16

struct sandbox_container {
	const char *hostname; /* NULL = of the name */
	bool readonly;	      /* the root */
	uint32_t umask;
	const char *netns; /* with SANDBOX_NET_GIVEN: where it is, */
	int netns_fd;	   /* and it, borrowed */
	struct {
		const char *target;
		uint64_t size; /* 0 = as limits.tmp_bytes */
		bool exec, readonly;
	} tmpfs[SANDBOX_TMPFS_MAX];
	size_t tmpfs_n;
	const char *
		noexec[SANDBOX_MOUNTS_MAX]; /* targets of binds from which nothing may be started */
	size_t noexec_n;
	/* Paths below /proc, besides those that are always hidden or read-only. */
	const char *masked[SANDBOX_PROC_MAX], *proc_ro[SANDBOX_PROC_MAX];
	size_t masked_n, proc_ro_n;
	/* Of the sandbox's own network and IPC namespace: "net/ipv4/..." */
	struct {
		const char *path, *value;
	} sysctls[SANDBOX_SYSCTLS_MAX];
	size_t sysctls_n;
	/* Lowered only: RLIMIT_*. */
	struct {
		int which;
		uint64_t soft, hard;
	} rlimits[SANDBOX_RLIMITS_MAX];
	size_t rlimits_n;
};

/* What the operator asked for. Strings are borrowed and must outlive the plan. */
struct sandbox_spec {
	const char *backend; /* "ns", "gvisor" */
	const char
		*platform; /* gvisor: "ptrace" or "systrap"; NULL = the better one that runsc has */
	const char *session; /* ULID: names cgroup and state */
	const char *name;
	const char *tenant;
	char *const *argv;		  /* NULL-terminated */
	const char *env[SANDBOX_ENV_MAX]; /* "K=V", added to the defaults */
	size_t env_n;
	struct sandbox_bind binds[SANDBOX_MOUNTS_MAX];
	size_t binds_n;
	struct sandbox_secret secrets[SANDBOX_SECRETS_MAX];
	size_t secrets_n;
	const char *workspace;	  /* host directory to use as /workspace; NULL = private tmpfs */
	bool workspace_unlimited; /* what should have limited it is not there: told as degraded */
	const char *cwd;	  /* NULL = /workspace */
	/* Directory in place of the root out of the host's own files; NULL. Read-only below, what the payload writes
	 * goes to memory and is gone at the end. */
	const char *root;
	const char *
		image; /* what `root` is: its digest; its files are then shown as the payload's own */
	/* OCI's or Docker's seccomp profile as JSON, besides warder's own filter; NULL. And its name for messages. */
	const char *seccomp, *seccomp_name;
	size_t seccomp_n;
	uint32_t uid, gid; /* of the payload, as it sees itself */
	enum sandbox_net net;
	/* As in runtime/egress/policy.h; the first with ALLOW only, the others with OPEN, too. */
	const char *net_allow[SANDBOX_NET_MAX];
	size_t net_allow_n;
	const char *net_services[SANDBOX_NET_MAX];
	size_t net_services_n;
	struct sandbox_route net_routes[SANDBOX_ROUTES_MAX];
	size_t net_routes_n;
	const char *net_limits; /* NULL = defaults */
	const char *net_dns;	/* resolver; NULL = the host's */
	struct sandbox_limits limits;
	bool tty; /* the payload gets a terminal of the sandbox's own in place of its three descriptors */
	uint16_t tty_rows, tty_cols;
	bool serve; /* sandbox_exec is wanted; then argv may be empty: nothing runs at first */
	const char *term; /* with tty: its type; NULL = xterm */
	/* NULL; else `root` is its own, borrowed like all strings. */
	const struct sandbox_container *container;
};

/* Hardened defaults. */
void sandbox_spec_defaults(struct sandbox_spec *spec);

struct sandbox_plan;

/* Checks the spec against this host, decides every mount, limit, id and filter. Changes nothing. */
int sandbox_plan_new(struct sandbox_plan **ret, const struct sandbox_spec *spec, struct err *err);
void sandbox_plan_free(struct sandbox_plan *p);
/* The plan as JSON for --dry-run and as text for people. */
int sandbox_plan_print(const struct sandbox_plan *p, bool json, FILE *out);
/* Lower-case hex SHA-256 of what the sandbox may do: the JSON form without session, names, command, its directory and
 * environment. */
const char *sandbox_plan_hash(const struct sandbox_plan *p);
/* Is it set up by programs of others in its control group (gVisor)? What the host's kernel sees there is their work. */
bool sandbox_plan_holds(const struct sandbox_plan *p);
/* Do the calls of what it runs show to the host's kernel, though another kernel carries them out? */
bool sandbox_plan_mirrors(const struct sandbox_plan *p);
/* Digest of the image that is its root; NULL. */
const char *sandbox_plan_image(const struct sandbox_plan *p);
/* Layers that this host cannot give, by name ("limit.memory", "landlock", ...). */
size_t sandbox_plan_degraded(const struct sandbox_plan *p, const char *const **ret);

/* A path inside and what it is of the host; NULL: nothing, it is the sandbox's own. Longer ones lie on top
 * of shorter ones. Strings live as long as the plan. Returns the number of rows. */
struct sandbox_place {
	const char *inside, *host;
	bool is_shared; /* a directory or file of the operator that the payload may write */
};
size_t sandbox_plan_places(const struct sandbox_plan *p, struct sandbox_place *rows, size_t max);

struct sandbox;

/* Make the cgroups (v2 leaf, own v1 directories on hybrid hosts) and the network namespace. Nothing
 * runs yet; whoever watches registers sandbox_cgroup_fd before sandbox_start. */
int sandbox_create(struct sandbox **ret, const struct sandbox_plan *plan, struct err *err);
int sandbox_cgroup_fd(const struct sandbox *s); /* O_DIRECTORY on the v2 leaf */
uint64_t sandbox_cgroup_id(const struct sandbox *s);
int sandbox_kill_fd(const struct sandbox *s);	/* cgroup.kill, open for writing: "1" kills all */
int sandbox_freeze_fd(const struct sandbox *s); /* cgroup.freeze */
int sandbox_events_fd(const struct sandbox *s); /* cgroup.events: POLLPRI on change, "populated" */

/* Networks ALLOW and OPEN: the process that is the way out, which the caller started for this plan's policy and
 * frees after the sandbox. Without one such a sandbox does not start. */
struct egress;
struct egress_policy;
void sandbox_set_egress(struct sandbox *s, struct egress *e);
/* NULL: the plan's network needs none. */
const struct egress_policy *sandbox_plan_egress(const struct sandbox_plan *p);

/* The view from inside of a backend that has a kernel of its own (gVisor). Set before sandbox_begin; borrowed until
 * sandbox_free. Without one nobody listens, and the sandbox starts all the same: what must be watched is the caller's
 * to decide, by setting it. */
#define SANDBOX_GUEST_SINK "/sink" /* the socket, as who connects to it names it */
struct sandbox_guest {
	/* SOCK_SEQPACKET, listening, mode 0666 in a directory of root's alone: it is shown to this sandbox's gVisor
	 * and to nobody else. NULL = none. */
	const char *sink;
	/* JSON of --pod-init-config, whose sink has SANDBOX_GUEST_SINK as its endpoint. NULL = none. */
	const char *pod_init;
	/* With `pod_init`: gVisor is made and the payload does not run yet. `sessions` is what `runsc trace list` said, NUL
	 * behind it; the runtime's own words. 0 = go on; -errno: all of it is killed, and the start has failed. */
	int (*gate)(void *arg, const char *sessions, size_t n, struct err *err);
	/* With sandbox_set_processes, before the second gate: they are there, and stand still. `fd`: what the runtime's
	 * own words are about them (JSON), the callee's to read. -errno as above. */
	int (*processes)(void *arg, int fd, struct err *err);
	void *arg;
};
void sandbox_set_guest(struct sandbox *s, const struct sandbox_guest *g);

/* ---- processes that are kept, and go on in another sandbox ---- */

/* What wrote them, and alone can read them, in words: "runsc 20240729 systrap". */
struct sandbox_runtime {
	char name[96];
};
/* Can this sandbox's be? -EOPNOTSUPP and why not. */
int sandbox_plan_keeps(const struct sandbox_plan *p, struct sandbox_runtime *ret, struct err *err);
/* In place of a command: those that sandbox_checkpoint wrote, of a sandbox with the same plan. The bytes must be trusted
 * by now. Before sandbox_begin; borrowed. */
void sandbox_set_processes(struct sandbox *s, int fd);
/* Begins to write them to `fd`, a pipe, which is closed with the last byte; from then on they stand still until
 * sandbox_go_on. One at a time: -EBUSY. */
int sandbox_checkpoint(struct sandbox *s, int fd, struct err *err);
/* After sandbox_dispatch: -EINPROGRESS, 0, or why it failed. Then the next one may begin. */
int sandbox_checkpoint_end(struct sandbox *s, struct err *err);
int sandbox_go_on(struct sandbox *s);

/* Before sandbox_begin: the caller will take the listener and answer, so attempts that no hook sees are told to it.
 * `calls`, `sockets`: nor do the hooks see which calls and sockets the filter refuses, so those are told as well. Else
 * the filter answers by itself. */
void sandbox_notify(struct sandbox *s, bool calls, bool sockets);
/* The listener of the payload's filter (seccomp_unotify(2)), the caller's from then on: who holds it answers each
 * notified call with SANDBOX_NOTIFY_ERRNO, and when nobody holds it any more they fail with ENOSYS. Once, from before
 * the payload's first instruction on; -1: it has not come yet, or there is none. */
int sandbox_take_notify(struct sandbox *s);
#define SANDBOX_NOTIFY_ERRNO EPERM
/* errno why the kernel refused a listener, and the filter answers itself: EBUSY where we are under one already. Once; 0. */
int sandbox_notify_refused(struct sandbox *s);

#define SANDBOX_START_MS 30000 /* a set-up that takes longer hangs in a dead file system */

enum sandbox_state { SANDBOX_RUNNING, SANDBOX_EXITED, SANDBOX_STARTING };

/* clone3 into the cgroup and begin to set up: the payload gets these three descriptors. What follows is told by
 * sandbox_fd and read with sandbox_follow. Any failure is ours (exit 125) and nothing is left behind. */
int sandbox_begin(struct sandbox *s, const int stdio[3], struct err *err);
/* Go on with the start, at most timeout_ms: SANDBOX_STARTING: not yet; SANDBOX_RUNNING: the payload's exec succeeded;
 * -ENOENT / -EACCES / -ENOEXEC of the command (exit 127 / 126), or a failure of ours, with nothing left behind.
 * The payload may act, and be judged, before its start is told here, and a sandbox that is frozen then tells
 * nothing until it goes on: who can freeze it must not wait for this alone. */
int sandbox_follow(struct sandbox *s, int timeout_ms, struct err *err);
/* Both, for who freezes nothing: to the payload's exec, or -errno as above. */
int sandbox_start(struct sandbox *s, const int stdio[3], struct err *err);
/* O_PATH on the sandbox's own /workspace, from its start to sandbox_free, also when all in it are dead; -1 when
 * that is a directory of the host, or could not be had. */
int sandbox_workspace_fd(const struct sandbox *s);
/* ---- the payload's own files ---- */

#define SANDBOX_DIRS_MAX 3 /* /workspace, /tmp, /var/tmp */

struct sandbox_dir {
	const char *inside;
	int fd; /* O_PATH, or a mount */
};

/* From the start to sandbox_free; may be none. Whoever's they are: a host directory as /workspace is one of them. */
size_t sandbox_dirs(const struct sandbox *s, struct sandbox_dir ret[SANDBOX_DIRS_MAX]);

/* In a process in the sandbox's control group, as the payload's user, with these directories and `in` and nothing
 * else. 0 or -errno, at most 255. */
typedef int sandbox_fill_fn(void *arg, const struct sandbox_dir *dirs, size_t n);
/* Between sandbox_create and sandbox_start, and before anybody watches: make the private ones of these directories
 * and have `fn` fill them. err is set only where the process itself failed. */
int sandbox_fill(struct sandbox *s, sandbox_fill_fn fn, void *arg, int in, int timeout_ms,
		 struct err *err);

/* With spec.tty, from sandbox_start to sandbox_free: the pty's master, non-blocking, made in the sandbox's own
 * devpts; else -1. */
int sandbox_tty_fd(const struct sandbox *s);
/* Readable when init has something to say or has gone. */
int sandbox_fd(const struct sandbox *s);

/* ---- further commands, with spec.serve ---- */

#define SANDBOX_EXECS_MAX 64 /* at once */

struct sandbox_exec {
	uint32_t id; /* not 0, and no other's that still runs */
	char *const *argv;
	char *const *env; /* all of it */
	size_t env_n;
	const char *cwd; /* NULL = the sandbox's */
	bool tty;	 /* a terminal of the sandbox's own in place of stdio */
	uint16_t rows, cols;
	int stdio[3]; /* borrowed */
};

struct sandbox_exec_event {
	enum {
		SANDBOX_EXEC_TTY,     /* `tty` is the master, the receiver's to close */
		SANDBOX_EXEC_STARTED, /* it runs */
		SANDBOX_EXEC_FAILED,  /* it does not: code = errno */
		SANDBOX_EXEC_DONE,    /* code, or signal and 128 + it */
	} what;
	uint32_t id; /* as init says: maybe nobody's */
	int code, signal, tty;
};

/* As the payload: same user, filters, namespaces, limits. 0: asked for; sandbox_dispatch tells by the function of
 * sandbox_on_exec what comes of it. -EOPNOTSUPP, -ESRCH; -EAGAIN: init is busy. */
int sandbox_exec(struct sandbox *s, const struct sandbox_exec *x, struct err *err);
int sandbox_exec_signal(struct sandbox *s, uint32_t id, int sig);
typedef void (*sandbox_exec_fn)(void *arg, struct sandbox_exec_event *ev);
/* Before sandbox_start. */
void sandbox_on_exec(struct sandbox *s, sandbox_exec_fn fn, void *arg);
/* The environment that a command has when nothing else is said. */
size_t sandbox_plan_env(const struct sandbox_plan *p, char *const **ret);

struct sandbox_result {
	int exit_code; /* payload's code, or 128 + signal */
	int signal;    /* that ended the payload; 0 = none */
	/* What ran the payload (gVisor's sentry) ended before it could say how the payload did, by itself or by somebody
	 * else: the two above are SIGKILL's then, and these are its own. */
	bool died;
	int death_code, death_signal;
	bool timed_out;
	uint64_t cpu_usec, mem_peak, pids_peak;
	uint64_t mem_now, pids_now;
	uint64_t oom_kills;	/* from the memory controller */
	uint64_t pids_denied;	/* forks refused by pids.max */
	uint64_t cpu_throttled; /* periods in which the CPU limit held it back */
	uint64_t cpu_throttled_usec;
};

/* Read what init says. SANDBOX_EXITED: the payload has ended (others may still run). -errno when the
 * sandbox died without saying how (killed as a whole): treat as ended by SIGKILL. */
int sandbox_dispatch(struct sandbox *s);
typedef void sandbox_secret_fn(void *arg, const struct sandbox_secret *gone);
/* Zeroes and removes secrets whose time is over at `now`, and tells of each. Their time begins with the first call: when
 * the payload runs. Returns when the next one's will be over; 0 = never. CLOCK_MONOTONIC ns. */
uint64_t sandbox_expire_secrets(struct sandbox *s, uint64_t now, sandbox_secret_fn *tell,
				void *arg);
/* Forward a signal to the payload's process group. */
int sandbox_signal(struct sandbox *s, int sig);
/* Kill everything (cgroup.kill), wait until empty, at most timeout_ms. */
int sandbox_kill(struct sandbox *s, int timeout_ms);
/* Usage, at any time; how the payload ended, after SANDBOX_EXITED or sandbox_kill. */
void sandbox_result(struct sandbox *s, struct sandbox_result *ret);
/* Descriptors of the caller's own, -1 = none: POLLPRI when the pids or memory limit was hit. */
void sandbox_hit_fds(const struct sandbox *s, int ret_fds[2]);
/* Kill what is left, remove cgroups, namespaces and state. */
void sandbox_free(struct sandbox *s);

/* For doctor: what the launcher needs, one row each; same meaning as capture_feature. */
struct sandbox_feature {
	const char *name;
	const char *what;
	bool ok, required;
	char detail[160];
};
size_t sandbox_features(struct sandbox_feature *rows, size_t max);

/* Remove cgroups of ours that no process and no live warder belongs to. Returns the number. */
int sandbox_sweep(struct err *err);

#endif

// SPDX-License-Identifier: Apache-2.0
/* create, and what stays of it: the keeper, a `warder run` that waits at a door before its payload begins. */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sys.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/oci.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/hub.h"
#include "userspace/pipeline/privdrop.h"

#define SHORT_ID   12 /* what tools show of ids of 64 digits */
#define LONG_ID	   64
#define NOFILE_MAX (1u << 20)
#define GONE_MS	   30000 /* for one that was told to end: its record is sealed first */
#define RUN_WORDS  16	 /* besides those of annotations and the command */

struct keep {
	struct oci_config c;
	struct arena mem;
	char *text; /* config.json */
	size_t n;
	char bundle[4096], root[8192], name[SANDBOX_NAME_MAX + 1], session[ULID_LEN + 1];
	const char *id;
	char numbers[8][32];
	int dir, lock, door, ready, starter;
};

/* ---- what the bundle says ---- */

int oci_read_file(const char *path, char **ret_text, size_t *ret_n, struct err *err)
{
	int r = file_read_at(AT_FDCWD, path, OCI_CONFIG_BYTES, ret_text, ret_n);

	return r < 0 ? err_set(err, -r, "'%s': %m", path) : 0;
}

static int read_bundle(struct keep *k, const char *bundle, struct err *err)
{
	char path[8192];
	int r;

	if (!realpath(bundle, k->bundle))
		return err_set(err, errno, "bundle '%s': %m", bundle);
	snprintf(path, sizeof(path), "%s/config.json", k->bundle);
	r = oci_read_file(path, &k->text, &k->n, err);
	if (r == 0)
		r = oci_config_parse(&k->c, &k->mem, "config.json", (struct str){ k->text, k->n },
				     err);
	if (r < 0)
		return r;
	r = snprintf(k->root, sizeof(k->root), "%s%s%s", k->c.root[0] == '/' ? "" : k->bundle,
		     k->c.root[0] == '/' ? "" : "/", k->c.root);
	if ((size_t)r >= sizeof(k->root))
		return err_set(err, ENAMETOOLONG, "root.path: %m");
	k->c.root = k->root;
	return 0;
}

/* Of the network only, and not the host's own: that is asked for in another way. */
static int open_netns(struct keep *k, struct err *err)
{
	struct sandbox_container *c = &k->c.container;
	struct stat own, st;
	struct statfs fs;

	if (k->c.net != OCI_NET_GIVEN)
		return 0;
	c->netns_fd = open(c->netns, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (c->netns_fd < 0 || fstat(c->netns_fd, &st) < 0 || fstatfs(c->netns_fd, &fs) < 0 ||
	    stat("/proc/self/ns/net", &own) < 0)
		return err_set(err, errno, "network namespace '%s': %m", c->netns);
	if (fs.f_type != NSFS_MAGIC || ioctl(c->netns_fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return err_set(err, EINVAL, "'%s' is no network namespace", c->netns);
	if (st.st_ino == own.st_ino && st.st_dev == own.st_dev)
		return err_set(err, EPERM,
			       "network namespace '%s' is the host's: say --network=host",
			       c->netns);
	return 0;
}

/* Told here, tools can tell it from other failures; what lies in a mount only the start can find. */
static int find_command(const struct keep *k, struct err *err)
{
	const char *name = k->c.process.argv[0], *path = NULL;
	auto_close int root = open(k->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int denied = 0;

	if (root < 0)
		return err_set(err, errno, "root '%s': %m", k->root);
	for (size_t i = 0; i < k->c.process.env_n; i++)
		if (!strncmp(k->c.process.env[i], "PATH=", 5))
			path = k->c.process.env[i] + 5;
	if (strchr(name, '/'))
		path = name[0] == '/' ? "" : k->c.process.cwd;
	while (path) {
		size_t n = strcspn(path, ":");
		char full[8192];
		struct stat st;

		if ((size_t)snprintf(full, sizeof(full), "%.*s/%s", (int)n, path, name) <
		    sizeof(full)) {
			auto_close int fd = sys_openat2(root, full, O_PATH, RESOLVE_IN_ROOT);

			if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
				if (st.st_mode & 0111)
					return 0;
				denied = 1;
			}
		}
		path = path[n] ? path + n + 1 : NULL;
	}
	for (size_t i = 0; i < k->c.binds_n; i++) /* it may be in one */
		if (!oci_is_told(k->c.binds[i].target))
			return 0;
	if (denied)
		return err_set(err, EACCES, "`%s`: permission denied", name);
	if (strchr(name, '/'))
		return err_set(err, ENOENT, "executable file `%s`: no such file or directory",
			       name);
	return err_set(err, ENOENT,
		       "executable file `%s` not found in $PATH: no such file or directory", name);
}

/* ---- as a `warder run` ---- */

static void say_number(struct keep *k, const char **words, size_t *n, const char *option,
		       uint64_t v, bool milli)
{
	char *text = k->numbers[*n / 2 % ARRAY_SIZE(k->numbers)];

	if (!v)
		return;
	if (milli)
		snprintf(text, sizeof(k->numbers[0]), "%llu.%03llu", (unsigned long long)(v / 1000),
			 (unsigned long long)(v % 1000));
	else
		snprintf(text, sizeof(k->numbers[0]), "%llu", (unsigned long long)v);
	words[(*n)++] = option;
	words[(*n)++] = text;
}

/* Options of annotations first: what the configuration says of its own accord has the last word. */
static int run_words(struct keep *k, const char ***ret, int *ret_n)
{
	const struct oci_config *c = &k->c;
	const char **w = calloc(c->words_n + RUN_WORDS + c->process.argc + 1, sizeof(*w));
	size_t n = 0;

	if (!w)
		return -ENOMEM;
	say_number(k, w, &n, "--memory", c->memory, false);
	say_number(k, w, &n, "--pids", c->pids, false);
	say_number(k, w, &n, "--cpus", c->cpu_milli, true);
	say_number(k, w, &n, "--nofile", MIN(c->nofile, (uint64_t)NOFILE_MAX), false);
	memmove(w + 1, w, n * sizeof(*w));
	w[0] = "run";
	n++;
	for (size_t i = 0; i < c->words_n; i++)
		w[n++] = c->words[i];
	w[n++] = "--name";
	w[n++] = k->name;
	w[n++] = "--quiet";
	w[n++] = "--";
	for (size_t i = 0; i < c->process.argc; i++)
		w[n++] = c->process.argv[i];
	*ret = w;
	*ret_n = (int)n;
	return 0;
}

static int add_env(const struct oci_process *p, struct sandbox_spec *spec, struct err *err)
{
	if (p->env_n + spec->env_n > SANDBOX_ENV_MAX)
		return err_set(err, E2BIG, "environment: more than %d variables", SANDBOX_ENV_MAX);
	memmove(spec->env + p->env_n, spec->env, spec->env_n * sizeof(*spec->env));
	memcpy(spec->env, p->env, p->env_n * sizeof(*p->env));
	spec->env_n += p->env_n;
	return 0;
}

static int add_net(struct keep *k, struct sandbox_spec *spec, struct err *err)
{
	if (k->c.net == OCI_NET_NONE) /* its own, with what the policy lets it reach */
		return 0;
	if (spec->net != SANDBOX_NET_NONE)
		return err_set(err, EINVAL,
			       "the policy says what the network is, and so does the container: "
			       "--network=none leaves it to the policy");
	spec->net = k->c.net == OCI_NET_HOST ? SANDBOX_NET_HOST : SANDBOX_NET_GIVEN;
	return 0;
}

/* On top of what the options say. */
static int amend(void *arg, struct sandbox_spec *spec, struct err *err)
{
	struct keep *k = arg;
	const struct oci_config *c = &k->c;
	int r;

	if (spec->root)
		return err_set(err, EINVAL, "the policy names a root, and the container has one");
	if (spec->seccomp && c->seccomp.n)
		return err_set(err, EINVAL,
			       "the policy names a seccomp profile, and the container has one: "
			       "--security-opt seccomp=unconfined leaves it to the policy");
	if (c->binds_n + spec->binds_n > SANDBOX_MOUNTS_MAX)
		return err_set(err, E2BIG, "mounts: more than %d binds", SANDBOX_MOUNTS_MAX);
	r = add_env(&c->process, spec, err);
	if (r == 0)
		r = add_net(k, spec, err);
	if (r < 0)
		return r;
	memcpy(spec->binds + spec->binds_n, c->binds, c->binds_n * sizeof(c->binds[0]));
	spec->binds_n += c->binds_n;
	spec->root = k->root;
	spec->container = &c->container;
	spec->cwd = c->process.cwd;
	spec->uid = c->process.uid;
	spec->gid = c->process.gid;
	spec->tty = c->process.terminal;
	if (c->seccomp.n) {
		spec->seccomp = c->seccomp.p;
		spec->seccomp_n = c->seccomp.n;
		spec->seccomp_name = "linux.seccomp";
	}
	return 0;
}

/* ---- the door ---- */

static bool is_ending(int sig)
{
	return sig == SIGKILL || sig == SIGTERM || sig == SIGINT || sig == SIGQUIT || sig == SIGHUP;
}

static int signal_in(const char *request)
{
	return !strncmp(request, "signal ", 7) ? oci_signal(request + 7) : 0;
}

static bool was_told_to_end(int signals)
{
	struct signalfd_siginfo si;
	bool ends = false;

	while (read(signals, &si, sizeof(si)) == sizeof(si))
		ends |= is_ending((int)si.ssi_signo);
	return ends;
}

/* All is there but the payload: whoever called create hears of it, and somebody has to say start. */
static int gate(void *arg, int engine, int signals)
{
	struct keep *k = arg;
	struct pollfd fds[] = { { .fd = k->door, .events = POLLIN },
				{ .fd = engine },
				{ .fd = signals, .events = POLLIN } };
	char request[OCI_TEXT];
	bool is_known;

	oci_state_created(k->dir);
	is_known = write(k->ready, "r", 1) == 1;
	close(take_fd(k->ready));
	if (!is_known) /* whoever called create has died: nobody would ever say start */
		return -ECANCELED;
	for (;;) {
		int fd, sig;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return -EPIPE;
		if (fds[2].revents && was_told_to_end(signals))
			return -ECANCELED;
		if (!fds[0].revents)
			continue;
		fd = oci_door_accept(k->door, request);
		if (fd < 0)
			continue;
		if (!strcmp(request, "start")) {
			k->starter = fd;
			return 0;
		}
		sig = signal_in(request);
		oci_door_answer(fd, sig ? 0 : EINVAL, sig ? "" : "not for a container");
		if (is_ending(sig))
			return -ECANCELED;
	}
}

static void hear(void *arg, void (*signal)(void *run, int sig), void *run)
{
	struct keep *k = arg;
	char request[OCI_TEXT];
	int fd = oci_door_accept(k->door, request), sig;

	if (fd < 0)
		return;
	sig = signal_in(request);
	if (sig)
		signal(run, sig);
	oci_door_answer(fd, sig ? 0 : EBUSY, sig ? "" : "the container was started before");
}

static void began(void *arg, int r, const struct err *why)
{
	struct keep *k = arg;

	if (r == 0)
		oci_state_started(k->dir);
	oci_door_answer(take_fd(k->starter), r < 0 ? -r : 0, r < 0 ? err_text(why) : "");
}

/* ---- the keeper ---- */

int oci_console(const char *path, uint16_t rows, uint16_t cols, struct err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct winsize ws = { .ws_row = rows, .ws_col = cols };
	auto_close int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), sock = -1, slave = -1;
	char name[64] = "/dev/ptmx";

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
	    ioctl(master, TIOCSWINSZ, &ws) < 0)
		return err_set(err, errno, "terminal: %m");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		return err_set(err, errno, "terminal: %m");
	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(err, ENAMETOOLONG, "console socket '%s': %m", path);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	(void)ptsname_r(master, name, sizeof(name));
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err, errno, "console socket '%s': %m", path);
	if (fd_send(sock, name, strlen(name), &master, 1, 0) < 0)
		return err_set(err, EIO, "console socket '%s': %m", path);
	return dup2(slave, 0) < 0 || dup2(slave, 1) < 0 ? err_set(err, errno, "terminal: %m") : 0;
}

static void say_notes(const struct keep *k)
{
	for (size_t i = 0; i < k->c.notes_n; i++) {
		log_info("%s", k->c.notes[i]);
		oci_say("info", k->c.notes[i]);
	}
}

/* By what the options say, those of a policy included. */
static int enter_registry(struct keep *k, int words_n, const char **words, int *ret_lock,
			  int *ret_hub, struct err *err)
{
	struct run_request q;
	int r = run_inspect(&q, words_n, (char **)words, NULL, err);

	if (r < 0)
		return r;
	q.entry.created_ns = clock_real_ns();
	q.entry.tty = k->c.process.terminal;
	snprintf(q.entry.session, sizeof(q.entry.session), "%s", k->session);
	snprintf(q.entry.metadata, sizeof(q.entry.metadata), "{\"container\":\"%s\"}", k->id);
	return registry_add(ret_lock, ret_hub, &q.entry, err);
}

/* Who speaks with the sandbox besides: exec, by us or by an agent. */
static int start_hub(struct keep *k, int words_n, const char **words, int *ret_hub, int *ret_lock,
		     struct err *err)
{
	struct hub_options o = { .in = -1, .out = -1, .err = -1, .client = -1 };
	pid_t pid;
	int r = enter_registry(k, words_n, words, ret_lock, &o.listen, err);

	if (r < 0)
		return r;
	engine_ids(&o.uid, &o.gid);
	r = hub_start(&pid, ret_hub, &o, err);
	close(o.listen);
	return r;
}

static void finish(int hub, int code, const char *reason)
{
	static struct hub_msg m;

	m.type = HUB_FINISHED;
	m.code = code;
	m.n = (uint32_t)strlen(reason);
	memcpy(m.words, reason, m.n);
	hub_send(hub, &m, -1);
}

/* Standard error is the container's: ours goes to its log. */
static int own_log(struct keep *k, int *ret_stderr)
{
	auto_close int log = openat(k->dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	*ret_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	return log < 0 || *ret_stderr < 0 || dup2(log, STDERR_FILENO) < 0 ? -errno : 0;
}

static int keep_it(struct keep *k, const char *console)
{
	struct run_door door = { .gate = gate, .hear = hear, .began = began, .arg = k };
	struct run_container rc = { .amend = amend, .arg = k, .door = &door };
	int entry = -1, hub = -1, words_n = 0, code = EXIT_WARDER, r;
	const char **words = NULL;
	char reason[32] = "internal";
	struct err err = { 0 };

	setsid();
	r = own_log(k, &rc.stderr_fd);
	if (r == 0)
		r = oci_door_listen(&k->door, k->dir);
	if (r < 0)
		err_set(&err, -r, "container: %m");
	if (r == 0)
		r = oci_state_write(k->dir, k->id, k->session, k->bundle, &k->c, getpid(), &err);
	if (r == 0 && console)
		r = oci_console(console, k->c.process.rows, k->c.process.cols, &err);
	if (r == 0 && run_words(k, &words, &words_n) < 0)
		r = err_set(&err, ENOMEM, "container: %m");
	if (r == 0)
		r = start_hub(k, words_n, words, &hub, &entry, &err);
	if (r < 0) {
		log_error("%s", err_text(&err));
		registry_remove(k->session);
		return EXIT_WARDER;
	}
	say_notes(k);
	door.fd = k->door;
	if (chdir("/") == 0)
		code = run_contained(words_n, (char **)words, k->session, hub, reason, &rc);
	registry_remove(k->session);
	finish(hub, code, reason);
	free(words);
	return code;
}

/* Of whoever called us only what we use may stay open: a pipe of theirs would never end. */
static void become_keeper(struct keep *k, const char *console)
{
	int keep[] = { k->dir, k->lock, k->ready, k->c.container.netns_fd };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN);
	if (fd_keep_only(keep, ARRAY_SIZE(keep)) < 0)
		_exit(EXIT_WARDER);
	exit(keep_it(k, console));
}

/* ---- create ---- */

int oci_write_pid(const char *path, pid_t pid, struct err *err)
{
	auto_buf struct buf text = { 0 };

	if (!path)
		return 0;
	buf_printf(&text, "%d", (int)pid);
	return cli_write_file(path, &text, 0644, err);
}

static int check_args(const struct keep *k, const struct oci_args *a, struct err *err)
{
	if (a->preserve_fds)
		return err_set(err, EOPNOTSUPP,
			       "option '--preserve-fds': a sandbox is given no descriptor but its "
			       "three");
	if (k->c.process.terminal && !a->console_socket)
		return err_set(err, EINVAL,
			       "process.terminal: '--console-socket' says where it goes");
	if (!k->c.process.terminal && a->console_socket)
		return err_set(err, EINVAL,
			       "option '--console-socket': the process has no terminal");
	return 0;
}

static void name_it(struct keep *k)
{
	size_t n = strlen(k->id);

	if (n == LONG_ID && strspn(k->id, "0123456789abcdef") == n)
		n = SHORT_ID;
	snprintf(k->name, sizeof(k->name), "%.*s", (int)n, k->id);
	ulid_make(k->session, clock_real_ns());
}

/* Our child, so its number is nobody else's until we have waited for it. */
static void end_child(const struct keep *k, pid_t pid, int sig)
{
	const struct oci_state s = { .dir = k->dir };

	kill(pid, sig);
	if (!oci_state_wait(&s, GONE_MS))
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Until it waits at its door, or has failed. */
static int await(struct keep *k, int ready, struct err *err)
{
	char why[OCI_TEXT], word;
	ssize_t n;

	do {
		n = read(ready, &word, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 1)
		return 0;
	oci_state_error(k->dir, why);
	return err_set(err, EIO, "%s", *why ? why : "the container's keeper died");
}

static int start_keeper(struct keep *k, const struct oci_args *a, struct err *err)
{
	auto_close int ready = -1;
	bool waits = false;
	int pair[2], r;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	ready = pair[0];
	k->ready = pair[1];
	pid = fork();
	if (pid == 0)
		become_keeper(k, a->console_socket);
	close(take_fd(k->ready));
	close(take_fd(k->lock));
	if (pid < 0)
		return err_set(err, EAGAIN, "fork: %m");
	r = await(k, ready, err);
	waits = r == 0;
	if (r == 0)
		r = oci_write_pid(a->pid_file, pid, err);
	if (r < 0) {
		end_child(k, pid, waits ? SIGTERM : SIGKILL);
		oci_sweep(k->session);
	}
	return r;
}

static int create(struct keep *k, const struct oci_args *a, const char *root, struct err *err)
{
	int r = read_bundle(k, a->bundle ? a->bundle : ".", err);

	if (r == 0)
		r = check_args(k, a, err);
	if (r == 0)
		r = find_command(k, err);
	if (r == 0)
		r = open_netns(k, err);
	if (r < 0)
		return r;
	name_it(k);
	r = oci_state_make(&k->dir, &k->lock, root, k->id, err);
	if (r < 0)
		return r;
	r = oci_state_write(k->dir, k->id, k->session, k->bundle, &k->c, 0, err);
	if (r == 0)
		r = start_keeper(k, a, err);
	if (r < 0)
		oci_state_remove(root, k->id, k->dir);
	return r;
}

int oci_create(const struct oci_args *a, const char *root, const char *id)
{
	static struct keep k;
	struct err err = { 0 };
	int r;

	k = (struct keep){
		.id = id, .dir = -1, .lock = -1, .door = -1, .ready = -1, .starter = -1
	};
	arena_init(&k.mem, OCI_CONFIG_MEM);
	r = create(&k, a, root, &err);
	arena_done(&k.mem);
	free(k.text);
	return r < 0 ? oci_fail(&err) : 0;
}

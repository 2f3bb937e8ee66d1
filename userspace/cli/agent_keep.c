// SPDX-License-Identifier: Apache-2.0
/* The keeper of one sandbox: a `warder run` whose terminal is a hub (userspace/pipeline/hub.h). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/cli/agent_park.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/hub.h"
#include "userspace/pipeline/privdrop.h"

/* What the worker hands over, by number. */
enum { KEEP_CLIENT = 3, KEEP_LOCK, KEEP_HUB, KEEP_FDS };
#define KEEP_WORDS 6 /* agent keep SESSION FLAGS ROWS COLS */

/* ---- the worker's side ---- */

static int place(const int from[3])
{
	int safe[3];

	for (int i = 0; i < 3; i++) {
		safe[i] = fcntl(from[i], F_DUPFD, KEEP_FDS);
		if (safe[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(safe[i], KEEP_CLIENT + i) < 0)
			return -errno;
	return close_range(KEEP_FDS, ~0u, 0) < 0 ? -errno : 0;
}

static void become_keeper(const struct keep_options *k, const int fds[3], const char *dir,
			  const char *term, const char **argv)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	(void)k;
	setsid();
	if (null >= 0 && (dup2(null, 0) < 0 || dup2(null, 1) < 0))
		_exit(EXIT_WARDER);
	if (term)
		setenv("TERM", term, 1);
	if ((dir && chdir(dir) < 0) || (!dir && chdir("/") < 0) || place(fds) < 0)
		_exit(EXIT_WARDER);
	execv("/proc/self/exe", (char *const *)argv);
	_exit(EXIT_WARDER);
}

int agent_keep(const struct keep_options *k, int client, int lock, int hub, const char *dir,
	       const char *term, const char *const *argv, struct err *err)
{
	const int fds[3] = { client, lock, hub };
	auto_free const char **words = NULL;
	char flags[8], rows[8], cols[8];
	size_t n = 0;
	pid_t pid;

	while (argv[n])
		n++;
	words = calloc(n + KEEP_WORDS + 2, sizeof(*words));
	if (!words)
		return -ENOMEM;
	snprintf(flags, sizeof(flags), "%s%s%s", k->let_go ? "d" : "-", k->tty ? "t" : "-",
		 k->has_command ? "c" : "-");
	if (agent_park_give(&(struct agent_request){ .op = AGENT_RUN,
						     .sandbox = k->session,
						     .cwd = flags,
						     .dir = dir,
						     .term = term,
						     .argv = (const char **)argv,
						     .argc = n,
						     .rows = k->rows,
						     .cols = k->cols },
			    client, lock, hub))
		return 0;
	snprintf(rows, sizeof(rows), "%u", k->rows);
	snprintf(cols, sizeof(cols), "%u", k->cols);
	words[0] = "warder";
	words[1] = "agent";
	words[2] = "keep";
	words[3] = k->session;
	words[4] = flags;
	words[5] = rows;
	words[6] = cols;
	memcpy(words + 7, argv, n * sizeof(*words));
	pid = fork();
	if (pid == 0)
		become_keeper(k, fds, dir, term, words);
	return pid < 0 ? err_set(err, errno, "keeper: fork: %m") : 0;
}

/* ---- the keeper's side ---- */

struct ends {
	int inner[3]; /* ours: stdin, stdout, stderr */
	struct hub_options hub;
};

static int open_tty(struct ends *e, unsigned rows, unsigned cols)
{
	struct winsize ws = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -errno;
	ioctl(master, TIOCSWINSZ, &ws);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		return -errno;
	e->inner[0] = e->inner[1] = e->inner[2] = slave;
	e->hub.in = e->hub.out = master;
	e->hub.err = -1;
	return 0;
}

static int open_pipes(struct ends *e)
{
	int p[3][2];

	for (int i = 0; i < 3; i++)
		if (pipe2(p[i], O_CLOEXEC) < 0)
			return -errno;
	e->inner[0] = p[0][0];
	e->inner[1] = p[1][1];
	e->inner[2] = p[2][1];
	e->hub.in = p[0][1];
	e->hub.out = p[1][0];
	e->hub.err = p[2][0];
	return 0;
}

static void take_inner(const int inner[3])
{
	for (int i = 0; i < 3; i++)
		dup2(inner[i], i);
	for (int i = 0; i < 3; i++)
		if (inner[i] > 2 && (i == 0 || inner[i] != inner[0]))
			close(inner[i]);
}

/* Said before there is a hub. */
static int fail_early(const char *what, int r)
{
	char text[256];

	snprintf(text, sizeof(text), "keeper: %s: %s", what, strerror(-r));
	agent_send_error(KEEP_CLIENT, EXIT_WARDER, text);
	return EXIT_WARDER;
}

static void finish(int hub, int code, const char *reason)
{
	static struct hub_msg m;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	fflush(stdout);
	fflush(stderr);
	for (int i = 0; null >= 0 && i < 3; i++) /* their end is the output's end */
		dup2(null, i);
	m.type = HUB_FINISHED;
	m.code = code;
	m.n = (uint32_t)strlen(reason);
	memcpy(m.words, reason, m.n);
	agent_send(hub, &m, HUB_MSG_HEAD + m.n, -1, 0);
}

int agent_keeper(int argc, char **argv)
{
	struct ends e = { .hub = { .listen = KEEP_HUB, .client = KEEP_CLIENT } };
	const char *session = argc > 3 ? argv[2] : "", *flags = argc > 3 ? argv[3] : "";
	char reason[32] = "internal";
	struct err err = { 0 };
	int hub = -1, code, r;
	uint64_t rows, cols;
	pid_t pid;

	if (argc < KEEP_WORDS || strlen(flags) != 3 || !ulid_is_valid(session) ||
	    parse_u64(argv[4], &rows) < 0 || parse_u64(argv[5], &cols) < 0 ||
	    fcntl(KEEP_HUB, F_GETFD) < 0) {
		err_set(&err, EINVAL, "`agent keep` is for the agent itself");
		return cli_bad_usage("agent", &err);
	}
	for (int i = KEEP_CLIENT; i < KEEP_FDS; i++)
		fcntl(i, F_SETFD, FD_CLOEXEC);
	e.hub.let_go = flags[0] == 'd';
	e.hub.tty = flags[1] == 't';
	e.hub.attachable = flags[2] == 'c';
	engine_ids(&e.hub.uid, &e.hub.gid);
	r = e.hub.tty ? open_tty(&e, (unsigned)rows, (unsigned)cols) : open_pipes(&e);
	if (r < 0)
		return fail_early("terminal", r);
	r = hub_start(&pid, &hub, &e.hub, &err);
	if (r < 0)
		return fail_early("hub", r);
	/* Only the hub has these from here on: when it closes one, that is seen. */
	close(e.hub.in);
	if (e.hub.out != e.hub.in)
		close(e.hub.out);
	if (e.hub.err >= 0)
		close(e.hub.err);
	close(KEEP_CLIENT);
	close(KEEP_HUB);
	take_inner(e.inner);
	log_set_prefix("warder");
	argv[5] = argv[0]; /* what stands before the options */
	code = run_kept(argc - 5, argv + 5, session, hub, reason);
	registry_remove(session);
	finish(hub, code, reason);
	return code;
}

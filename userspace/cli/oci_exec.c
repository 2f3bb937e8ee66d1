// SPDX-License-Identifier: Apache-2.0
/* exec: one more command, by the keeper's hub. Who waits for it waits for us: our exit code is its own. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/term.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/oci.h"

struct ready {
	int32_t code;
	char why[OCI_TEXT];
};

struct job {
	struct oci_process p;
	struct arena mem;
	char *text;
	int tell; /* who waits for the beginning; -1 */
};

static int from_words(struct job *j, const struct oci_args *a, char **command, struct err *err)
{
	j->p = (struct oci_process){ .argv = command,
				     .cwd = a->cwd,
				     .terminal = a->tty,
				     .rows = OCI_ROWS,
				     .cols = OCI_COLS };
	while (command[j->p.argc])
		j->p.argc++;
	if (!j->p.argc)
		return err_set(err, EINVAL, "no command given");
	for (size_t i = 0; i < a->env.n; i++)
		j->p.env[j->p.env_n++] = a->env.v[i];
	return 0;
}

static int read_job(struct job *j, const struct oci_args *a, const struct oci_state *s,
		    char **command, struct err *err)
{
	size_t n = 0;
	int r;

	if (a->preserve_fds)
		return err_set(err, EOPNOTSUPP,
			       "option '--preserve-fds': a sandbox is given no descriptor but its "
			       "three");
	if (a->user)
		return err_set(err, EOPNOTSUPP, "option '--user': a sandbox has one user");
	if (!a->process)
		return from_words(j, a, command, err);
	r = oci_read_file(a->process, &j->text, &n, err);
	if (r == 0)
		r = oci_process_parse(&j->p, &j->mem, "process", (struct str){ j->text, n }, err);
	if (r == 0 && (j->p.uid != s->uid || j->p.gid != s->gid))
		r = err_set(err, EOPNOTSUPP,
			    "user %u:%u: the container's is %llu:%llu, and there is no other",
			    j->p.uid, j->p.gid, (unsigned long long)s->uid,
			    (unsigned long long)s->gid);
	return r;
}

/* In the words of who runs containers, whose tools look for them. */
static void began(void *arg, int code, const char *why)
{
	struct job *j = arg;
	struct ready m = { .code = code };

	if (code == EXIT_NOT_FOUND)
		snprintf(m.why, sizeof(m.why),
			 "executable file `%.200s` not found in $PATH: no such file or directory",
			 j->p.argv[0]);
	else if (code == EXIT_CANNOT_EXEC)
		snprintf(m.why, sizeof(m.why), "`%.200s`: permission denied", j->p.argv[0]);
	else
		snprintf(m.why, sizeof(m.why), "%s", why ? why : "");
	if (j->tell >= 0) {
		(void)!write(j->tell, &m, sizeof(m));
		close(take_fd(j->tell));
	} else if (code) {
		struct err err = { 0 };

		err_set(&err, EIO, "%s", m.why);
		oci_fail(&err);
	}
}

static int ask(struct job *j, const struct oci_state *s, int *ret_sock, struct err *err)
{
	auto_buf struct buf text = { 0 };
	struct agent_request q = {
		.op = AGENT_EXEC,
		.sandbox = s->session,
		.argv = (const char **)j->p.argv,
		.argc = j->p.argc,
		.env = j->p.env,
		.env_n = j->p.env_n,
		.cwd = j->p.cwd,
		.tty = j->p.terminal,
		.rows = j->p.rows,
		.cols = j->p.cols,
	};
	char said[256];
	int pair[2], r;

	if (agent_request_print(&text, &q) < 0)
		return err_set(err, E2BIG, "the command is too long");
	/* In the record before it is done, as an agent does. */
	r = order_give("exec", s->session, "oci exec", said, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socket pair: %m");
	r = registry_pass(s->session, (struct str){ text.p, text.n }, pair[1], err);
	close(pair[1]);
	if (r < 0)
		close(pair[0]);
	else
		*ret_sock = pair[0];
	return r;
}

/* Nothing has begun before the file says who waits for it. */
static int be_it(struct job *j, const struct oci_state *s, const struct oci_args *a)
{
	struct err err = { 0 };
	uint16_t rows, cols;
	int sock = -1, r = oci_write_pid(a->pid_file, getpid(), &err);

	if (r == 0 && a->console_socket)
		r = oci_console(a->console_socket, j->p.rows, j->p.cols, &err);
	else if (j->p.terminal && term_size(STDIN_FILENO, &rows, &cols) == 0 && rows && cols) {
		j->p.rows = rows;
		j->p.cols = cols;
	}
	if (r == 0)
		r = ask(j, s, &sock, &err);
	if (r < 0) {
		began(j, EXIT_WARDER, err_text(&err));
		return 1;
	}
	return agent_talk_on(sock, j->p.terminal && isatty(STDIN_FILENO), began, j);
}

static void become_it(struct job *j, const struct oci_state *s, const struct oci_args *a)
{
	int keep[] = { s->dir, j->tell };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (fd_keep_only(keep, ARRAY_SIZE(keep)) < 0)
		_exit(EXIT_WARDER);
	exit(be_it(j, s, a));
}

/* It goes on without us once it runs. */
static int let_go(struct job *j, const struct oci_state *s, const struct oci_args *a,
		  struct err *err)
{
	auto_close int ready = -1;
	struct ready m = { 0 };
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	ready = pair[0];
	j->tell = pair[1];
	pid = fork();
	if (pid == 0)
		become_it(j, s, a);
	close(take_fd(j->tell));
	if (pid < 0)
		return err_set(err, EAGAIN, "fork: %m");
	if (fd_read_full(ready, &m, sizeof(m)) != (ssize_t)sizeof(m))
		return err_set(err, EIO, "exec: it died");
	m.why[sizeof(m.why) - 1] = 0;
	return m.code ? err_set(err, EIO, "%s", m.why) : 0;
}

static int run(struct job *j, const struct oci_args *a, const char *root, const char *id,
	       char **command, struct err *err)
{
	struct oci_state s;
	int r = oci_state_open(&s, root, id, err);

	if (r < 0)
		return r;
	if (s.status != OCI_RUNNING)
		r = err_set(err, ESRCH, "container '%s' is not running but %s", id,
			    oci_status_names[s.status]);
	if (r == 0)
		r = read_job(j, a, &s, command, err);
	if (r == 0 && j->p.terminal && a->detach && !a->console_socket)
		r = err_set(err, EINVAL, "a terminal: '--console-socket' says where it goes");
	if (r == 0 && (a->detach || a->console_socket))
		r = let_go(j, &s, a, err);
	else if (r == 0)
		r = be_it(j, &s, a);
	oci_state_done(&s);
	return r;
}

int oci_exec(const struct oci_args *a, const char *root, const char *id, char **command)
{
	static struct job j;
	struct err err = { 0 };
	int r;

	j = (struct job){ .tell = -1 };
	arena_init(&j.mem, OCI_CONFIG_MEM);
	r = run(&j, a, root, id, command, &err);
	arena_done(&j.mem);
	free(j.text);
	return r < 0 ? oci_fail(&err) : r;
}

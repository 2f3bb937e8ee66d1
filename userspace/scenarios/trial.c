// SPDX-License-Identifier: Apache-2.0
#include "userspace/scenarios/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/scenarios/trap.h"

#define INSIDE	   "/opt/warder-scenario" /* where the payload stands in a sandbox */
#define ARGS_MAX   64
#define WORD_MAX   (TRIAL_PATH_MAX + 64)
#define RESULT_MAX (64 << 10)
#define PLAN_MAX   (1 << 20)
#define HUNG_NS	   (300 * NSEC_PER_SEC)

extern char **environ;

/* ---- a command line ---- */

struct args {
	char *v[ARGS_MAX];
	size_t n;
};

static void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
}

#define auto_args __attribute__((cleanup(args_done)))

/* Room for the NULL behind the last is kept. */
static int args_add(struct args *a, const char *word)
{
	if (a->n + 1 >= ARGS_MAX)
		return -E2BIG;
	a->v[a->n] = strdup(word);
	if (!a->v[a->n])
		return -ENOMEM;
	a->n++;
	return 0;
}

static int args_add_all(struct args *a, const char *const *words)
{
	int r = 0;

	for (size_t i = 0; r == 0 && words[i]; i++)
		r = args_add(a, words[i]);
	return r;
}

/* ---- a process ---- */

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Reads what it says until it has closed its end; what does not fit is read and dropped. False: it is late. */
static bool read_output(int fd, char *out, size_t max, size_t *ret_n)
{
	uint64_t end = now_ns() + HUNG_NS;
	char rest[4096];

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (now >= end)
			return false;
		if (poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		n = *ret_n < max ? read(fd, out + *ret_n, max - *ret_n)
				 : read(fd, rest, sizeof(rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		if (*ret_n < max)
			*ret_n += (size_t)n;
	}
}

/* Starts it with stdout in a pipe of ours and stderr in a file; to the end. Exit code as a shell has it. */
static int command(struct args *a, int give_fd, const char *stderr_path, char *out, size_t max,
		   size_t *ret_n, bool *ret_hung)
{
	posix_spawn_file_actions_t fa;
	int p[2], st = 0, r;
	pid_t pid;

	*ret_n = 0;
	*ret_hung = false;
	a->v[a->n] = NULL;
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, stderr_path,
					 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (give_fd >= 0)
		posix_spawn_file_actions_adddup2(&fa, give_fd, TRAP_FD);
	r = posix_spawn(&pid, a->v[0], &fa, NULL, a->v, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	if (r) {
		close(p[0]);
		return -r;
	}
	if (!read_output(p[0], out, max, ret_n)) {
		*ret_hung = true;
		kill(pid, SIGTERM); /* it ends its sandbox */
	}
	close(p[0]);
	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

/* ---- what our own programs wrote: JSON of one known shape ---- */

/* The text behind "key":, or NULL. */
static const char *json_find(const char *text, const char *key)
{
	char want[64];
	const char *p;

	snprintf(want, sizeof(want), "\"%s\":", key);
	p = strstr(text, want);
	return p ? p + strlen(want) : NULL;
}

static void json_text(const char *text, const char *key, char *ret, size_t max)
{
	const char *p = json_find(text, key);
	size_t n = p && *p == '"' ? strcspn(p + 1, "\"") : 0;

	snprintf(ret, max, "%.*s", (int)n, n ? p + 1 : "");
}

static uint64_t json_number(const char *text, const char *key)
{
	const char *p = json_find(text, key);

	return p ? strtoull(p, NULL, 10) : 0;
}

/* ---- all of them ---- */

uint64_t trials_limit(const struct trials *t, const char *name)
{
	return json_number(t->plan, name);
}

static int read_plan(struct trials *t, struct err *err)
{
	auto_args struct args a = { 0 };
	char *plan = calloc(1, PLAN_MAX + 1);
	char said[TRIAL_PATH_MAX + 8], workspace[TRIAL_PATH_MAX];
	size_t n;
	bool hung;
	int r;

	t->plan = plan;
	if (!plan)
		return -ENOMEM;
	snprintf(said, sizeof(said), "%s/plan", t->dir);
	r = args_add_all(&a, (const char *[]){ t->self, "run", "--dry-run", "--json", NULL });
	if (r == 0 && t->policy)
		r = args_add_all(&a, (const char *[]){ "--policy", t->policy, NULL });
	if (r == 0 && t->backend)
		r = args_add_all(&a, (const char *[]){ "--backend", t->backend, NULL });
	if (r == 0)
		r = args_add_all(&a, (const char *[]){ "--", "true", NULL });
	if (r == 0)
		r = command(&a, -1, said, plan, PLAN_MAX, &n, &hung);
	if (r < 0)
		return err_set(err, r, "'%s': %s", t->self, strerror(-r));
	if (r > 0) {
		auto_free char *text = NULL;

		file_read_at(AT_FDCWD, said, RESULT_MAX, &text, NULL);
		return err_set(err, EINVAL, "the policy cannot be run: %.*s",
			       text ? (int)strcspn(text, "\n") : 0, text ? text : "");
	}
	json_text(plan, "backend", t->on, sizeof(t->on));
	json_text(plan, "net", t->net, sizeof(t->net));
	json_text(plan, "target\":\"/workspace\",\"source", workspace, sizeof(workspace));
	t->host_workspace = workspace[0] == '/';
	return 0;
}

int trials_init(struct trials *t, const char *policy, const char *backend, struct err *err)
{
	struct str program = scenario_payload();
	const char *tmp = getenv("TMPDIR");
	char path[TRIAL_PATH_MAX + 16];
	auto_close int fd = -1;
	int r;

	*t = (struct trials){ .self = "/proc/self/exe", .policy = policy, .backend = backend };
	snprintf(path, sizeof(path), "%s/warder-scenarios-XXXXXX",
		 tmp && *tmp == '/' ? tmp : "/tmp");
	if (!mkdtemp(path))
		return err_set(err, errno, "'%s': %m", path);
	snprintf(t->dir, sizeof(t->dir), "%.500s", path);
	snprintf(t->payload, sizeof(t->payload), "%.480s/payload", t->dir);
	fd = open(t->payload, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	r = fd < 0 ? -errno : fd_write_all(fd, program.p, program.n);
	if (r < 0)
		return err_set(err, r, "'%s': %s", t->payload, strerror(-r));
	/* Of the host's records, keys and live sessions nothing is touched. */
	snprintf(path, sizeof(path), "%.480s/state", t->dir);
	setenv("WARDER_STATE", path, 1);
	snprintf(path, sizeof(path), "%.480s/run", t->dir);
	setenv("WARDER_RUN", path, 1);
	return read_plan(t, err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0; /* what can be removed is */
}

void trials_done(struct trials *t)
{
	if (t->dir[0])
		nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	t->dir[0] = 0;
	free(t->plan);
	t->plan = NULL;
}

/* ---- one of them ---- */

/* A word of a row: numbers of the host, the place of the trap. */
static int add_word(struct args *a, const struct trap *trap, const char *word)
{
	char text[WORD_MAX];

	if (!strcmp(word, "@service"))
		return args_add(a, TRAP_NAME);
	if (!strcmp(word, "@planted"))
		return args_add(a, trap->planted);
	if (!strcmp(word, "@bind")) {
		snprintf(text, sizeof(text), "/etc/hostname:/workspace/out/%s", trap->planted);
		return args_add(a, text);
	}
	if (!strcmp(word, "@trap") || !strncmp(word, "@trap:", 6)) {
		snprintf(text, sizeof(text), "%.540s%.32s", trap->place, word + 5);
		return args_add(a, text);
	}
	if (strcmp(word, "@pid") != 0)
		return args_add(a, word);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	return args_add(a, text);
}

static int add_words(struct args *a, const struct trap *trap, const char *const *words)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < SCENARIO_WORDS_MAX && words[i]; i++)
		r = add_word(a, trap, words[i]);
	return r;
}

static int add_common(struct args *a, const struct trials *t, const struct trial *ret, bool enforce)
{
	char text[WORD_MAX];
	int r;

	r = args_add_all(a, (const char *[]){ t->self, "run", "--quiet", "--sign", "never",
					      "--no-workspace-diff", "--session-dir", NULL });
	snprintf(text, sizeof(text), "%s/session", ret->dir);
	if (r == 0)
		r = args_add(a, text);
	snprintf(text, sizeof(text), "%s/result", ret->dir);
	if (r == 0)
		r = args_add_all(a, (const char *[]){ "--result", text, NULL });
	snprintf(text, sizeof(text), "%s:" INSIDE, t->payload);
	if (r == 0)
		r = args_add_all(a, (const char *[]){ "--ro", text, NULL });
	if (r == 0 && t->policy)
		r = args_add_all(a, (const char *[]){ "--policy", t->policy, NULL });
	if (r == 0 && t->backend)
		r = args_add_all(a, (const char *[]){ "--backend", t->backend, NULL });
	snprintf(text, sizeof(text), "%s/workspace", ret->dir);
	if (r == 0 && t->host_workspace && mkdir(text, 0777) == 0 && chmod(text, 0777) == 0)
		r = args_add_all(a, (const char *[]){ "--workspace", text, NULL });
	if (r == 0 && !enforce)
		r = args_add(a, "--dry-run-actions");
	return r;
}

static int make_command(struct args *a, const struct trials *t, const struct scenario *s,
			const struct trial *ret, const struct trap *trap, bool enforce)
{
	int r = add_common(a, t, ret, enforce);

	if (r == 0 && s && (!t->policy || s->limit))
		r = add_words(a, trap, s->options);
	if (r == 0)
		r = args_add_all(a, (const char *[]){ "--", INSIDE, NULL });
	if (r == 0 && !s)
		return args_add(a, "twins");
	if (r == 0 && enforce && s->killer)
		r = args_add(a, "-w");
	if (r == 0) {
		char id[4];

		snprintf(id, sizeof(id), "%.3s", s->id); /* P40b is P40 under other conditions */
		r = args_add(a, id);
	}
	return r < 0 ? r : add_words(a, trap, s->words);
}

/* What warder said, without its name. */
static void read_error(struct trial *ret, const char *path)
{
	auto_free char *text = NULL;

	if (file_read_at(AT_FDCWD, path, RESULT_MAX, &text, NULL) < 0)
		return;
	snprintf(ret->error, sizeof(ret->error), "%.*s", (int)strcspn(text, "\n"), text);
}

static void read_result(struct trial *ret)
{
	auto_free char *text = NULL;
	char path[WORD_MAX];

	snprintf(path, sizeof(path), "%s/result", ret->dir);
	if (file_read_at(AT_FDCWD, path, RESULT_MAX, &text, NULL) < 0)
		return;
	json_text(text, "reason", ret->reason, sizeof(ret->reason));
	json_text(text, "rule", ret->rule, sizeof(ret->rule));
}

int trial_run(struct trial *ret, const struct trials *t, const struct scenario *s, const char *name,
	      bool enforce, struct err *err)
{
	auto_args struct args a = { 0 };
	struct trap trap;
	char said[WORD_MAX];
	int r;

	memset(ret, 0, offsetof(struct trial, output));
	ret->error[0] = 0;
	snprintf(ret->dir, sizeof(ret->dir), "%.400s/%.60s", t->dir, name);
	if (mkdir(ret->dir, 0700) < 0)
		return err_set(err, errno, "'%s': %m", ret->dir);
	r = trap_set(&trap, s ? s->trap : TRAP_NONE, ret->dir, err);
	if (r < 0)
		return r;
	snprintf(said, sizeof(said), "%s/stderr", ret->dir);
	r = make_command(&a, t, s, ret, &trap, enforce);
	if (r == 0)
		r = command(&a, trap.give_fd, said, ret->output, TRIAL_OUTPUT_MAX, &ret->output_n,
			    &ret->hung);
	ret->planted = trap_end(&trap);
	if (r < 0)
		return err_set(err, r, "'%s': %s", t->self, strerror(-r));
	ret->code = r;
	ret->output[ret->output_n] = 0;
	read_result(ret);
	read_error(ret, said);
	return 0;
}

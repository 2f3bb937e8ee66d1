// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup.h"

#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/sys.h"
#include "userspace/base/auto.h"

#define FD_SAFE 10 /* descriptors move here first, so that none is overwritten on its way */

void setup_at(struct setup *s, const char *what)
{
	size_t n = strnlen(what, sizeof(s->at) - 1);

	memcpy(s->at, what, n);
	s->at[n] = 0;
}

/* v1 has no clone-into: joining must come before anything that costs memory or processes. By `tasks`:
 * a thread that moves itself needs no global lock, while cgroup.procs waits for a grace period of
 * all CPUs, several milliseconds. There is only this one thread. */
int setup_v1(struct setup *s)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		if (s->v1_tasks[i] < 0)
			continue;
		setup_at(s, controller_names[i]);
		if (write(s->v1_tasks[i], "0", 1) != 1)
			return -errno;
	}
	return 0;
}

static int set_hostname(struct setup *s)
{
	setup_at(s, s->plan->hostname);
	return sethostname(s->plan->hostname, strlen(s->plan->hostname)) < 0 ? -errno : 0;
}

/* The host's session keyring would be searched by request_key. */
int setup_keyring(struct setup *s)
{
	setup_at(s, "session");
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return -errno;
	return 0;
}

int setup_no_new_privs(struct setup *s)
{
	setup_at(s, "PR_SET_NO_NEW_PRIVS");
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* 0-2 stdio, 3 control, 4 config, 5 init's program (closed by its exec), nothing else. */
int setup_fds(struct setup *s)
{
	int *const from[] = { &s->stdio[0], &s->stdio[1], &s->stdio[2],
			      &s->control,  &s->config,	  &s->init };
	const int to[] = { 0, 1, 2, INIT_CONTROL_FD, INIT_CONFIG_FD, INIT_CONFIG_FD + 1 };
	const int last = INIT_CONFIG_FD + 1;

	setup_at(s, "dup");
	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		int fd = fcntl(*from[i], F_DUPFD_CLOEXEC, FD_SAFE);

		if (fd < 0)
			return -errno;
		*from[i] = fd;
	}
	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		if (dup3(*from[i], to[i], to[i] == last ? O_CLOEXEC : 0) < 0 && errno != EINVAL)
			return -errno;
		*from[i] = to[i];
	}
	setup_at(s, "close_range");
	return close_range((unsigned)last + 1, ~0u, 0) < 0 ? -errno : 0;
}

int setup_exec(struct setup *s)
{
	static char name[] = "warder-init";
	char *argv[] = { name, NULL };
	char *envp[] = { NULL };
	sigset_t none;

	setup_at(s, "init");
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	sys_execveat(s->init, "", argv, envp, AT_EMPTY_PATH);
	return -errno;
}

int setup_umask(struct setup *s)
{
	umask(s->plan->container ? (mode_t)s->plan->container->umask : 0022);
	return 0;
}

/* Whatever class the launcher runs in: a real-time payload would have the machine to itself. */
int setup_scheduling(struct setup *s)
{
	const struct sched_param none = { 0 };

	setup_at(s, "SCHED_OTHER");
	return sched_setscheduler(0, SCHED_OTHER, &none) < 0 ? -errno : 0;
}

/* The order is the design: everything that needs the host's privilege, then the user namespace that
 * owns nothing, then one right after the other is given away. */
const struct setup_step setup_steps_ns[] = {
	{ "cgroup", setup_v1 },
	{ "host name", set_hostname },
	{ "root", setup_root },
	{ "network", setup_net },
	{ "pivot", setup_pivot },
	{ "keyring", setup_keyring },
	{ "user namespace", setup_userns },
	{ "namespace limits", setup_ns_limits },
	{ "umask", setup_umask },
	{ "scheduling", setup_scheduling },
	{ "bounding set", setup_caps_bound },
	{ "ids", setup_ids },
	{ "capabilities", setup_caps_drop },
	{ "no new privileges", setup_no_new_privs },
	{ "landlock", setup_landlock },
	{ "descriptors", setup_fds },
	/* Late: the launcher has more files open than a payload may need. */
	{ "resource limit", setup_rlimits },
	{ "exec of init", setup_exec },
	{ NULL, NULL },
};

static void report(struct setup *s, const char *step, int r)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_FAILED, .code = -r };

	snprintf(f.step, sizeof(f.step), "%s", step);
	memcpy(f.text, s->at, sizeof(f.text));
	send(s->control, &f, sizeof(f), MSG_NOSIGNAL);
}

void setup_run(struct setup *s)
{
	/* The parent's handlers must not run here; exec would reset them, but only at the end. */
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction sa = { .sa_handler = SIG_DFL };

		sigaction(sig, &sa, NULL);
	}
	close(s->leaf);
	close(s->peer);
	for (const struct setup_step *step = s->steps; step->name; step++) {
		int r;

		s->at[0] = 0;
		r = step->run(s);
		if (r < 0) {
			report(s, step->name, r);
			_exit(125);
		}
	}
	_exit(125); /* not reached: the last step is an exec */
}

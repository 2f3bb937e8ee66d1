// SPDX-License-Identifier: Apache-2.0
/* The root part's side of the engine: its start, what it is sent and asked, its end. */
#include "userspace/pipeline/engine_part.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/confine_calls.h"

#define READY_TIMEOUT_MS 10000
#define ENGINE_NICE	 (-5)

static int receive_early(int fd, struct engine_msg *msg, struct err *err)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int r;

	do {
		r = poll(&pfd, 1, READY_TIMEOUT_MS);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(err, ETIMEDOUT, "the engine did not get ready within %d s",
			       READY_TIMEOUT_MS / 1000);
	if (recv(fd, msg, sizeof(*msg), 0) != (ssize_t)sizeof(*msg))
		return err_set(err, EPIPE, "the engine died during its start");
	return 0;
}

/* Only the beginning of this session's record is signed, whatever the engine may ask. */
static void answer_sign(int fd, const struct engine_options *opt, const struct engine_sign *s)
{
	struct engine_msg msg = { .type = ENGINE_SIGNED };
	struct err err = { 0 };
	int r;

	if (opt->keys_dirfd < 0 ||
	    !genesis_is_for(s->msg, sizeof(s->msg), opt->session.session, opt->host_key))
		r = err_set(&err, EPERM, "signing: not the beginning of this session's record");
	else
		r = keys_sign(opt->keys_dirfd, s->real_ns, s->msg, sizeof(s->msg), &msg.signature,
			      &err);
	if (r < 0) {
		msg.type = ENGINE_FAILED;
		snprintf(msg.text, sizeof(msg.text), "%s", err_text(&err));
	}
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}

static int wait_ready(int fd, const struct engine_options *opt, struct err *err)
{
	struct engine_msg msg;
	int r;

	r = receive_early(fd, &msg, err);
	if (r == 0 && msg.type == ENGINE_SIGN) {
		answer_sign(fd, opt, &msg.sign);
		r = receive_early(fd, &msg, err);
	}
	if (r < 0)
		return r;
	if (msg.type == ENGINE_FAILED)
		return err_set(err, EIO, "%.*s", ERR_TEXT_MAX - 1, msg.text);
	return msg.type == ENGINE_READY ? 0 : err_set(err, EPROTO, "the engine spoke out of turn");
}

int engine_start(pid_t *ret_pid, int *ret_fd, const struct engine_options *opt, struct err *err)
{
	auto_close int ours = -1;
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socket pair: %m");
	ours = pair[0];
	pid = fork();
	if (pid < 0) {
		close(pair[1]);
		return err_set(err, errno, "fork: %m");
	}
	if (pid == 0) {
		close(pair[0]);
		engine_main(pair[1], opt);
	}
	close(pair[1]);
	r = wait_ready(ours, opt, err);
	if (r < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	/* A sandbox that burns all CPUs must not keep the verdict waiting. Only the thread that drains and
	 * judges: the sinks' exist by now. Where it is not allowed it goes without. */
	(void)setpriority(PRIO_PROCESS, (id_t)pid, ENGINE_NICE);
	*ret_pid = pid;
	*ret_fd = take_fd(ours);
	return 0;
}

int engine_send_record(int fd, const void *rec, size_t len)
{
	struct engine_msg msg = { .type = ENGINE_RECORD };

	if (len > sizeof(msg.record))
		return -EMSGSIZE;
	memcpy(msg.record, rec, len);
	return send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void engine_send_thaw(int fd)
{
	const struct engine_msg msg = { .type = ENGINE_THAW };

	(void)!send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}

void engine_send_usage(int fd, const struct capture_usage *usage)
{
	struct engine_msg msg = { .type = ENGINE_USAGE };

	for (size_t i = 0; i < usage->maps_n; i++)
		msg.used[i] = usage->maps[i].used;
	(void)!send(fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int engine_next(int fd, struct engine_msg *ret)
{
	ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);

	if (n <= 0) /* its end is seen by poll(2) */
		return 0;
	return n == (ssize_t)sizeof(*ret) ? 1 : -EPROTO;
}

static int send_with_fd(int fd, const struct engine_msg *msg, int passed)
{
	ssize_t n = fd_send(fd, msg, sizeof(*msg), &passed, passed >= 0, 0);

	return n < 0 ? (int)n : 0;
}

int engine_send_rules(int fd, int texts_fd, const struct engine_rules *rules)
{
	const struct engine_msg msg = { .type = ENGINE_RULES, .rules = *rules };

	return send_with_fd(fd, &msg, texts_fd);
}

int engine_send_notify(int fd, int listener, const char *why)
{
	struct engine_msg msg = { .type = ENGINE_NOTIFY };

	snprintf(msg.text, sizeof(msg.text), "%s", why);
	return send_with_fd(fd, &msg, listener);
}

int engine_send_processes(int fd, int processes_fd)
{
	const struct engine_msg msg = { .type = ENGINE_PROCESSES };

	return send_with_fd(fd, &msg, processes_fd);
}

int engine_send_workspace(int fd, int items_fd)
{
	const struct engine_msg msg = { .type = ENGINE_WORKSPACE };

	return send_with_fd(fd, &msg, items_fd);
}

static int tell_death(int status, struct err *err)
{
	const char *why = confine_calls_death(status);

	return err_set(err, EPIPE, "the engine died (status 0x%x%s%s): the record is not sealed",
		       status, why ? "; " : "", why ? why : "");
}

int engine_finish(int fd, pid_t pid, const struct run_facts *facts, struct engine_result *ret,
		  struct err *err)
{
	struct engine_msg msg = { .type = ENGINE_FINISH };
	int status = 0;
	ssize_t n;

	msg.facts = *facts;
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	do {
		n = recv(fd, &msg, sizeof(msg), 0);
	} while ((n < 0 && errno == EINTR) ||
		 (n == (ssize_t)sizeof(msg) &&
		  (msg.type == ENGINE_RESUME || msg.type == ENGINE_RELOAD ||
		   msg.type == ENGINE_WORKSPACE || msg.type == ENGINE_RULES_DONE ||
		   msg.type == ENGINE_STOPPED)));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(msg) || msg.type != ENGINE_DONE)
		return tell_death(status, err);
	/* Strings from a process that may have been taken over: end them ourselves. */
	msg.result.reason[sizeof(msg.result.reason) - 1] = 0;
	msg.result.rule[sizeof(msg.result.rule) - 1] = 0;
	msg.result.action[sizeof(msg.result.action) - 1] = 0;
	msg.result.sink_text[sizeof(msg.result.sink_text) - 1] = 0;
	*ret = msg.result;
	return 0;
}

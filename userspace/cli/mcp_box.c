// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/plain.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/mcp.h"
#include "userspace/cli/util.h"

#define GONE_MS 30000 /* for a sandbox that was killed to be gone */

/* An agent for one question: the same code, the same laws, and the keeper that it starts is as much one. */
static int reach_alone(int *ret_fd, struct err *err)
{
	int pair[2], null;
	pid_t pid;

	if (geteuid() != 0)
		return err_set(err, EPERM,
			       "no agent answers (warder agent), and without one this needs root");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socketpair: %m");
	pid = fork();
	if (pid == 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int i = 0; null >= 0 && i < 2; i++) /* the client's, not its */
			dup2(null, i);
		close_range(3, (unsigned)pair[1] - 1, 0);
		close_range((unsigned)pair[1] + 1, ~0u, 0);
		signal(SIGCHLD, SIG_DFL);
		_exit(agent_work(pair[1], pair[1]));
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_set(err, errno, "fork: %m");
	}
	*ret_fd = pair[0];
	return 0;
}

int box_reach(int *ret_fd, bool alone, struct err *err)
{
	return !alone && agent_connect(ret_fd) == 0 ? 0 : reach_alone(ret_fd, err);
}

int box_make(struct mcp_box *b, const char *const *words, size_t n, struct err *err)
{
	struct agent_request q = { .op = AGENT_CREATE, .hold = true, .argc = n };
	auto_buf struct buf text = { 0 };
	char dir[4096];
	int r;

	q.argv = (const char **)words;
	q.dir = getcwd(dir, sizeof(dir));
	if (agent_request_print(&text, &q) < 0)
		return err_set(err, E2BIG, "the options are too long");
	r = box_reach(&b->fd, b->alone, err);
	if (r < 0)
		return r;
	r = agent_send(b->fd, text.p, text.n, -1, 0);
	return r < 0 && r != -EPIPE ? err_set(err, r, "asking the agent: %s", strerror(-r)) : 0;
}

/* What its keeper says goes to our stderr; the last line may be why it ended. */
static void take_words(struct mcp_box *b, char *p)
{
	for (char *line = strtok(p, "\n"); line; line = strtok(NULL, "\n")) {
		static const char ours[] = "warder: ";

		plain_text(line, '?', "");
		fprintf(stderr, "%s\n", line);
		if (!strncmp(line, ours, strlen(ours)))
			line += strlen(ours);
		if (strncmp(line, "session ", 8)) /* the closing line, which says less */
			snprintf(b->why, sizeof(b->why), "%s", line);
	}
}

static void ended(struct mcp_box *b, const char *reason)
{
	b->state = BOX_ENDED;
	if (!*b->reason)
		snprintf(b->reason, sizeof(b->reason), "%s", *reason ? reason : "internal");
	close(take_fd(b->fd));
}

void box_hear(struct mcp_box *b)
{
	char packet[AGENT_FRAME_MAX + 1], word[512];
	ssize_t n = agent_recv(b->fd, packet, NULL, MSG_DONTWAIT);
	struct str p = { packet, n > 0 ? (size_t)n : 0 };

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		snprintf(b->why, sizeof(b->why), "its keeper has gone away");
		ended(b, "internal");
		return;
	}
	packet[n] = 0;
	if (packet[0] == 'e' || packet[0] == 'o') {
		take_words(b, packet + 1);
		return;
	}
	cli_member(p, "session", word, sizeof(word));
	if (*word)
		snprintf(b->session, sizeof(b->session), "%.31s", word);
	if (*cli_member(p, "started", word, sizeof(word)) && b->state == BOX_MADE)
		b->state = BOX_RUNS;
	if (*cli_member(p, "error", word, sizeof(word))) {
		snprintf(b->why, sizeof(b->why), "%s", word);
		ended(b, "internal");
	} else if (*cli_member(p, "exit", word, sizeof(word))) {
		ended(b, cli_member(p, "reason", word, sizeof(word)));
	}
}

void box_end(struct mcp_box *b)
{
	const struct agent_request q = { .op = AGENT_RM, .sandbox = b->session };
	auto_buf struct buf text = { 0 };
	auto_close int fd = -1;
	char packet[AGENT_FRAME_MAX];
	struct pollfd p = { .events = POLLIN };

	if (b->fd < 0 || b->state == BOX_ENDED)
		return;
	/* One that is not known yet, or not heard of, ends when we hang up. */
	if (*b->session && agent_request_print(&text, &q) == 0 &&
	    box_reach(&fd, b->alone, NULL) == 0 && agent_send(fd, text.p, text.n, -1, 0) == 0) {
		p.fd = fd;
		if (poll(&p, 1, GONE_MS) == 1)
			agent_recv(fd, packet, NULL, MSG_DONTWAIT);
	}
	close(take_fd(b->fd));
	b->state = BOX_ENDED;
}

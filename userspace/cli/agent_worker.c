// SPDX-License-Identifier: Apache-2.0
/* One client: who it is, what it wants, may it. What runs is handed on to a keeper or its hub; what is asked is
 * answered here. A worker may die of any of it without harm to others. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/agent_show.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/snapshots.h"

#define REQUEST_MS 10000 /* from a connection to its request */
#define GONE_MS	   20000 /* for a sandbox that was killed to be gone */

struct work {
	int client;
	struct agent_config config;
	struct agent_peer peer;
	struct agent_request q;
	struct arena arena;
};

static int answer(struct work *w, const char *key, const char *value)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, key);
	json_strz(&j, value);
	json_key(&j, "exit");
	json_i64(&j, 0);
	json_object_end(&j);
	return out.failed ? -ENOMEM : agent_send(w->client, out.p, out.n, -1, 0);
}

/* ---- run, create ---- */

/* "K=V", none twice, as one object. */
static int make_metadata(char ret[REGISTRY_META], const struct agent_request *q, struct err *err)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	buf_init(&out, REGISTRY_META - 1);
	json_init(&j, &out);
	json_object_begin(&j);
	for (size_t i = 0; i < q->metadata_n; i++) {
		const char *kv = q->metadata[i], *eq = strchr(kv, '=');
		size_t n = eq ? (size_t)(eq - kv) + 1 : 0;

		if (n < 2)
			return err_set(err, EINVAL, "metadata: '%.80s' is not NAME=VALUE", kv);
		for (size_t k = 0; k < i; k++)
			if (!strncmp(q->metadata[k], kv, n))
				return err_set(err, EINVAL, "metadata: '%.*s' is given twice",
					       (int)MIN(n - 1, (size_t)80), kv);
		json_key_str(&j, (struct str){ kv, n - 1 });
		json_strz(&j, eq + 1);
	}
	json_object_end(&j);
	if (out.failed)
		return err_set(err, E2BIG, "metadata: more than %d bytes as JSON",
			       REGISTRY_META - 1);
	memcpy(ret, out.p, out.n);
	ret[out.n] = 0;
	return 0;
}

static int start(struct work *w, struct err *err)
{
	const struct agent_restrict limits = { &w->config.policies, w->peer.tenant };
	bool create = w->q.op == AGENT_CREATE, stays = create && !w->q.hold;
	const char **argv = arena_zalloc(&w->arena, (w->q.argc + 5) * sizeof(*argv)), **own = argv;
	auto_close int lock = -1, hub = -1;
	struct run_request run;
	struct keep_options k = { .let_go = stays, .rows = w->q.rows, .cols = w->q.cols };
	int r;

	if (!argv)
		return err_set(err, ENOMEM, "%m");
	*argv++ = "run";
	memcpy(argv, w->q.argv, w->q.argc * sizeof(*argv));
	/* Relative paths are the client's, and so are files: only root has any of both here. */
	if (w->peer.is_root && w->q.dir && chdir(w->q.dir) < 0)
		return err_set(err, errno, "directory '%s': %m", w->q.dir);
	r = run_inspect(&run, (int)w->q.argc + 1, (char **)own, w->peer.is_root ? NULL : &limits,
			err);
	if (r < 0)
		return r;
	if (!run.has_command && !create)
		return err_set(err, EINVAL, "no command given");
	if (!run.has_command && run.tty)
		return err_set(err, EINVAL, "option '--tty': without a command, give it to exec");
	ulid_make(run.entry.session, clock_real_ns());
	run.entry.created_ns = clock_real_ns();
	run.entry.uid = w->peer.uid;
	r = make_metadata(run.entry.metadata, &w->q, err);
	if (r == 0)
		r = agent_admit(&lock, &hub, &run.entry, &w->config, w->client, err);
	if (r < 0)
		return r;
	k.session = run.entry.session;
	k.tty = run.tty;
	k.has_command = run.has_command;
	/* In front: what stands later on the line wins, and who is not root has no such option. */
	memmove(argv + 2, argv, w->q.argc * sizeof(*argv));
	argv[0] = "--tenant";
	argv[1] = run.entry.tenant;
	if (create) {
		auto_buf struct buf out = { 0 };

		buf_printf(&out, "{\"session\":\"%s\"}", run.entry.session);
		agent_send(w->client, out.p, out.n, -1, 0);
	}
	r = agent_keep(&k, w->client, lock, hub, w->peer.is_root ? w->q.dir : NULL, w->q.term, argv,
		       err);
	if (r < 0)
		registry_remove(run.entry.session);
	return r;
}

/* ---- of one that runs ---- */

static int find(struct work *w, struct registry_entry *ret, struct err *err)
{
	if (!w->q.sandbox)
		return err_set(err, EINVAL, "which sandbox?");
	return registry_find(ret, w->q.sandbox, w->peer.is_root ? NULL : w->peer.tenant, err);
}

/* Who it was is in the record before it is done: what cannot be told is not begun. */
static int tell_session(struct work *w, const char *session, struct err *err)
{
	const struct agent_peer *p = &w->peer;
	char who[128], text[256];

	snprintf(who, sizeof(who), "uid %u, gid %u, pid %d, tenant %.63s", p->uid, p->gid,
		 (int)p->pid, p->is_root ? "any" : p->tenant);
	return order_give(agent_op_names[w->q.op], session, who, text, err);
}

/* Its name, and how large it may become: the tenant's room, whatever the client said. */
static int add_room(struct work *w, const char *tenant, struct err *err)
{
	const char **argv = arena_zalloc(&w->arena, 4 * sizeof(*argv));
	bool processes = w->q.argc == 2 && !strcmp(w->q.argv[1], AGENT_PROCESSES);
	uint64_t room;
	int r;

	if ((w->q.argc != 1 && !processes) || !argv)
		return err_set(err, argv ? EINVAL : ENOMEM, "one name of a snapshot");
	r = agent_disk_left(&room, tenant, &w->config, err);
	argv[0] = w->q.argv[0];
	argv[1] = arena_printf(&w->arena, "%" PRIu64, room).p;
	argv[2] = processes ? AGENT_PROCESSES : NULL;
	w->q.argv = argv;
	w->q.argc = processes ? 3 : 2;
	return r;
}

static int pass(struct work *w, struct err *err)
{
	auto_buf struct buf text = { 0 };
	struct registry_entry e;
	int r = find(w, &e, err);

	if (r == 0 && w->q.op == AGENT_SNAPSHOT)
		r = add_room(w, e.tenant, err);
	if (r < 0)
		return r;
	w->q.who = w->peer.who;
	if (w->q.op == AGENT_ATTACH) /* its terminal is what it began with */
		w->q.tty = e.tty;
	if (agent_request_print(&text, &w->q) < 0)
		return err_set(err, E2BIG, "the command is too long");
	if (w->q.op != AGENT_SNAPSHOT) /* which has an event of its own */
		r = tell_session(w, e.session, err);
	if (r < 0)
		return r;
	return registry_pass(e.session, (struct str){ text.p, text.n }, w->client, err);
}

static int order(struct work *w, const char *word, struct err *err)
{
	struct registry_entry e;
	char text[256];
	int r = find(w, &e, err);

	if (r < 0)
		return r;
	r = order_give(word, e.session, w->peer.who, text, err);
	if (r == -ENOENT) /* it is there; it is not frozen */
		r = -EALREADY;
	return r < 0 ? r : answer(w, "line", text);
}

/* Killed, and gone: what it held is free when this is answered. */
static int remove_one(struct work *w, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + GONE_MS * NSEC_PER_MSEC;
	struct registry_entry e, again;
	char text[256];
	int r = find(w, &e, err);

	if (r == 0)
		r = order_give("kill", e.session, w->peer.who, text, err);
	if (r < 0 && r != -ESRCH)
		return r;
	*err = (struct err){ 0 };
	while (registry_find(&again, e.session, NULL, NULL) == 0) {
		if (clock_ns(CLOCK_MONOTONIC) >= end)
			return err_set(err, ETIMEDOUT, "sandbox %s is not gone yet", e.session);
		poll(NULL, 0, 20);
	}
	return answer(w, "line", e.session);
}

static int remove_snapshots(struct work *w, struct err *err)
{
	const char *tenant = w->peer.is_root ? "default" : w->peer.tenant;
	int r = w->q.argc ? 0 : err_set(err, EINVAL, "which snapshot?");

	for (size_t i = 0; i < w->q.argc && r == 0; i++)
		r = snapshots_remove(tenant, w->q.argv[i], err);
	return r < 0 ? r : agent_send(w->client, "{\"exit\":0}", 10, -1, 0);
}

/* ---- the request ---- */

static int take_request(struct work *w, struct err *err)
{
	struct pollfd p = { .fd = w->client, .events = POLLIN };
	static char packet[AGENT_FRAME_MAX];
	ssize_t n;

	if (poll(&p, 1, REQUEST_MS) <= 0)
		return err_set(err, ETIMEDOUT, "no request came");
	n = agent_recv(w->client, packet, NULL, MSG_DONTWAIT);
	if (n <= 0)
		return n == 0 ? -EPIPE : err_set(err, (int)-n, "request: %m");
	return agent_request_parse(&w->q, &w->arena, (struct str){ packet, (size_t)n }, err);
}

static int carry_out(struct work *w, struct err *err)
{
	const char *tenant = w->peer.is_root ? NULL : w->peer.tenant;

	switch (w->q.op) {
	case AGENT_RUN:
	case AGENT_CREATE:
		return start(w, err);
	case AGENT_EXEC:
	case AGENT_ATTACH:
	case AGENT_SNAPSHOT:
		return pass(w, err);
	case AGENT_SNAPSHOTS:
		return agent_snapshots(w->client, tenant, err);
	case AGENT_SNAPSHOT_RM:
		return remove_snapshots(w, err);
	case AGENT_KILL:
		return order(w, "kill", err);
	case AGENT_PAUSE:
		return order(w, "freeze", err);
	case AGENT_RESUME:
		return order(w, "thaw", err);
	case AGENT_RM:
		return remove_one(w, err);
	case AGENT_PS:
		return agent_show(w->client, tenant, w->q.sandbox, err);
	case AGENT_LOGS:
		return agent_logs(w->client, tenant, &w->q, err);
	case AGENT_EVENTS:
		return agent_events(w->client, tenant, &w->q, err);
	default:
		return err_set(err, EOPNOTSUPP, "not for the agent");
	}
}

int agent_work(int client, int peer)
{
	struct work w = { .client = client };
	struct err err = { 0 };
	int r;

	arena_init(&w.arena, 4 * AGENT_FRAME_MAX + 4 * AGENT_WORDS_MAX * sizeof(char *));
	r = agent_config_load(&w.config, &err);
	if (r == 0)
		r = agent_peer_of(&w.peer, peer, &w.config, &err);
	if (r == 0)
		r = take_request(&w, &err);
	if (r == 0)
		r = carry_out(&w, &err);
	if (r < 0)
		agent_send_errno(client, EXIT_WARDER, r, err_text(&err));
	arena_done(&w.arena);
	return r < 0 ? EXIT_WARDER : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* What operators order, and what they are told of who stands still. */
#include "userspace/pipeline/engine_part.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/pipeline/run_status.h"

void engine_carry_out(void *arg, const char *word, const char *argument, const char *who,
		      struct control_answer *ret)
{
	static const char *const words[] = {
		[ORDER_APPROVE] = "approve", [ORDER_DENY] = "deny", [ORDER_FREEZE] = "freeze",
		[ORDER_THAW] = "thaw",	     [ORDER_KILL] = "kill",
	};
	const struct session_options *so;
	struct engine *e = arg;
	char other[192];
	uint32_t id = 0;

	so = &e->opt->session;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		if (i <= ORDER_DENY && !hold_name_parse(argument, so->session, &id)) {
			ret->result = -ENOENT;
			return;
		}
		/* Root, an agent, may say for whom it asks; nobody else is heard here as anybody else. */
		if (i > ORDER_DENY && !strncmp(argument, "for ", 4) && !strncmp(who, "uid 0,", 6)) {
			snprintf(other, sizeof(other), "%.90s, by the agent (%.80s)", argument + 4,
				 who);
			who = other;
		}
		ret->result = pipeline_order(e->pipeline, so->sandbox_id, (enum pipeline_order)i,
					     id, who, ret->text, sizeof(ret->text));
		return;
	}
	/* Root, an agent, says for whom, before it passes him on. */
	if (!strcmp(word, "exec") || !strcmp(word, "attach")) {
		if (strncmp(argument, "for ", 4) || strncmp(who, "uid 0,", 6))
			ret->result = -EPERM;
		else
			ret->result =
				pipeline_asked(e->pipeline, so->sandbox_id, word, argument + 4);
		return;
	}
	if (!strcmp(word, "reload")) {
		const struct engine_msg msg = { .type = ENGINE_RELOAD };

		ret->result = send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -errno : 0;
		snprintf(ret->text, sizeof(ret->text),
			 "rule files are read again; an audit.rules event tells how it went");
		return;
	}
	if (!strcmp(word, "workspace") && e->opt->no_workspace) {
		ret->result = -EOPNOTSUPP;
		snprintf(
			ret->text, sizeof(ret->text),
			"it was started with --no-workspace-diff: there is nothing to compare with");
		return;
	}
	if (!strcmp(word, "workspace")) {
		const struct engine_msg msg = { .type = ENGINE_WORKSPACE };

		ret->result = send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -errno : 0;
		snprintf(ret->text, sizeof(ret->text),
			 "the workspace is compared; a workspace.scan event ends what was found");
		return;
	}
	ret->result = -EINVAL;
	snprintf(ret->text, sizeof(ret->text), "unknown request");
}

void engine_let_go(struct engine *e)
{
	const struct session_options *so = &e->opt->session;
	struct action_report report;

	if (pipeline_may_go_on(e->pipeline, so->sandbox_id) && !e->store.paused)
		action_freeze(&so->target, false, 0, &report);
}

struct stop_words {
	const char *session;
	struct buf text;
	struct json json;
	size_t n;
};

static void add_question(void *arg, const struct hold *h)
{
	struct stop_words *w = arg;
	char name[HOLD_NAME_MAX];

	hold_name_text(name, w->session, h->id);
	buf_printf(&w->text, "%srule '%s' asks: warder approve %s, or warder deny %s",
		   w->n++ ? "; " : "", h->rule, name, name);
	json_object_begin(&w->json);
	json_key(&w->json, "id");
	json_strz(&w->json, name);
	json_key(&w->json, "rule");
	json_strz(&w->json, h->rule);
	json_key(&w->json, "trigger");
	json_strz(&w->json, h->trigger);
	json_object_end(&w->json);
}

/* {} = not frozen. The time is the wall clock's: who reads it does not know ours. */
static void tell_freeze(struct engine *e)
{
	auto_buf struct buf out = { 0 };
	char time[RFC3339_NS_LEN + 1];
	uint64_t deadline, now = clock_ns(CLOCK_MONOTONIC);
	const char *rule;
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	if (pipeline_freeze(e->pipeline, e->opt->session.sandbox_id, &rule, &deadline)) {
		json_key(&j, "rule");
		*rule ? json_strz(&j, rule) : json_null(&j);
		json_key(&j, "killed_at");
		if (deadline != UINT64_MAX)
			rfc3339_ns(time, clock_real_ns() + (deadline > now ? deadline - now : 0));
		deadline != UINT64_MAX ? json_strz(&j, time) : json_null(&j);
	}
	json_object_end(&j);
	run_status_write(e->opt->status_dirfd, "frozen", (struct str){ out.p, out.n });
}

/* For `warder status`, and for who sits in front of `warder run`. */
void engine_check_stopped(struct engine *e)
{
	struct stop_words w = { .session = e->opt->session.session };
	struct engine_msg msg = { .type = ENGINE_STOPPED };
	auto_buf struct buf json = { 0 };
	bool changed, stopped;

	json_init(&w.json, &json);
	json_array_begin(&w.json);
	stopped = pipeline_is_stopped(e->pipeline, e->opt->session.sandbox_id, &changed,
				      add_question, &w);
	json_array_end(&w.json);
	if (changed) {
		if (stopped && !w.n)
			buf_printf(&w.text, "frozen: warder thaw or warder kill %s", w.session);
		snprintf(msg.text, sizeof(msg.text), "%.*s", (int)w.text.n,
			 w.text.n ? w.text.p : "");
		/* First where it is looked up, then to who sits in front: who was told finds it there. */
		run_status_write(e->opt->status_dirfd, "questions", (struct str){ json.p, json.n });
		tell_freeze(e);
		if (e->fd >= 0)
			send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	buf_done(&w.text);
}

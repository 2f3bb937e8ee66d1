// SPDX-License-Identifier: Apache-2.0
/* Other rules while the sandbox runs: compiled beside the work, taken over between two events. */
#include "userspace/pipeline/engine_part.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"

static void tell_rules(struct engine *e, bool ok, const char *text)
{
	struct engine_msg msg = { .type = ENGINE_RULES_DONE, .rules.ok = ok };

	pipeline_rules_event(e->pipeline, e->opt->session.sandbox_id, ok, text);
	snprintf(msg.rules.text, sizeof(msg.rules.text), "%s", text);
	if (e->fd >= 0)
		send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}

static void refuse_rules(struct engine *e, const char *why, const char *text)
{
	char all[ERR_TEXT_MAX];

	snprintf(all, sizeof(all), "rules not changed (%.150s): %.800s", why, text);
	tell_rules(e, false, all);
}

/* Between two events: each is judged by exactly one set. */
void engine_change_rules(struct engine *e)
{
	struct ruleset *rules = NULL;
	struct err err = { 0 };
	char text[ERR_TEXT_MAX];
	size_t kept = 0;
	int r;

	r = reload_job_take(&e->reload, &rules, &err);
	if (r == 0) {
		r = pipeline_set_rules(e->pipeline, rules, &kept);
		if (r < 0)
			err_set(&err, r, "out of memory");
	}
	if (r < 0) {
		ruleset_free(rules);
		refuse_rules(e, e->reload.why, err_text(&err));
		return;
	}
	ruleset_free(e->rules);
	e->rules = rules;
	snprintf(text, sizeof(text),
		 "rules changed (%s): %zu rules, %zu go on with what they remember", e->reload.why,
		 ruleset_count(rules), kept);
	tell_rules(e, true, text);
}

void engine_begin_rules(struct engine *e, struct engine_rules *rules, int texts_fd)
{
	int r;

	rules->why[sizeof(rules->why) - 1] = 0;
	rules->text[sizeof(rules->text) - 1] = 0;
	if (texts_fd < 0) {
		refuse_rules(e, rules->why, rules->text);
		return;
	}
	r = reload_job_start(&e->reload, texts_fd, rules->actions, rules->why);
	if (r < 0)
		refuse_rules(e, rules->why, strerror(-r));
}

// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define NAME_TAIL 8 /* characters of the session's id: its random end */

static uint64_t deadline(uint64_t timeout_ns)
{
	return timeout_ns ? clock_ns(CLOCK_MONOTONIC) + timeout_ns : UINT64_MAX;
}

uint32_t hold_add(struct holds *h, const struct rule_info *rule, int wait_ms,
		  const struct action_target *t, struct action_report *ret)
{
	struct hold *new;

	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->v[i].rule, rule->name))
			return 0;
	if (h->n == HOLD_QUESTIONS_MAX)
		return 0;
	action_freeze(t, true, wait_ms, ret);
	new = &h->v[h->n++];
	*new = (struct hold){
		.id = ++h->last_id,
		.asked_ns = ret->done_ns,
		.deadline_ns = deadline(h->policy.timeout_ns),
	};
	snprintf(new->rule, sizeof(new->rule), "%s", rule->name);
	h->changed = true;
	return new->id;
}

void hold_set_trigger(struct holds *h, uint32_t id, struct str event_id)
{
	for (size_t i = 0; i < h->n; i++) {
		if (h->v[i].id != id)
			continue;
		snprintf(h->v[i].trigger, sizeof(h->v[i].trigger), "%.*s", (int)event_id.n,
			 event_id.n ? event_id.p : "");
		h->changed = true;
	}
}

bool hold_freeze(struct holds *h, const char *rule, int wait_ms, const struct action_target *t,
		 struct action_report *ret)
{
	if (h->frozen)
		return false;
	action_freeze(t, true, wait_ms, ret);
	h->frozen = h->changed = true;
	snprintf(h->freeze_rule, sizeof(h->freeze_rule), "%s", rule);
	h->freeze_deadline_ns = deadline(h->policy.freeze_timeout_ns);
	return true;
}

int hold_take(struct holds *h, uint32_t id, struct hold *ret)
{
	for (size_t i = 0; i < h->n; i++) {
		if (h->v[i].id != id)
			continue;
		*ret = h->v[i];
		h->n--;
		memmove(h->v + i, h->v + i + 1, (h->n - i) * sizeof(*h->v));
		h->changed = true;
		return 0;
	}
	return -ENOENT;
}

void hold_note_answer(struct holds *h, uint32_t id, bool approved, const char *who)
{
	struct hold_answer *a = &h->answered[id % HOLD_QUESTIONS_MAX];

	*a = (struct hold_answer){ .id = id, .approved = approved };
	snprintf(a->who, sizeof(a->who), "%s", who ? who : "");
}

const struct hold_answer *hold_answered(const struct holds *h, uint32_t id)
{
	const struct hold_answer *a = &h->answered[id % HOLD_QUESTIONS_MAX];

	return id && a->id == id ? a : NULL;
}

bool hold_expired(const struct holds *h, uint64_t now, uint32_t *ret_id)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].deadline_ns <= now) {
			*ret_id = h->v[i].id;
			return true;
		}
	return false;
}

bool hold_freeze_expired(const struct holds *h, uint64_t now)
{
	return h->frozen && h->freeze_deadline_ns <= now;
}

bool hold_is_stopped(const struct holds *h)
{
	return h->frozen || h->n;
}

void hold_release(struct holds *h, int wait_ms, const struct action_target *t,
		  struct action_report *ret)
{
	h->changed = true;
	if (hold_is_stopped(h)) {
		*ret = (struct action_report){ .done_ns = clock_boot_ns(),
					       .text = "partial: another question is open" };
		return;
	}
	action_freeze(t, false, wait_ms, ret);
}

uint64_t hold_deadline(const struct holds *h)
{
	uint64_t at = h->frozen ? h->freeze_deadline_ns : UINT64_MAX;

	for (size_t i = 0; i < h->n; i++)
		at = MIN(at, h->v[i].deadline_ns);
	return at;
}

/* ---- names ---- */

static const char *tail(const char *session)
{
	size_t n = strlen(session);

	return session + (n > NAME_TAIL ? n - NAME_TAIL : 0);
}

void hold_name_text(char ret[HOLD_NAME_MAX], const char *session, uint32_t id)
{
	snprintf(ret, HOLD_NAME_MAX, "%s-%u", tail(session), id);
}

struct str hold_name(const char *session, uint32_t id, struct arena *arena)
{
	char text[HOLD_NAME_MAX];

	hold_name_text(text, session, id);
	return arena_strndup(arena, text, strlen(text));
}

bool hold_name_parse(const char *name, const char *session, uint32_t *ret_id)
{
	const char *dash = strrchr(name, '-'), *want = tail(session);
	char *end;
	unsigned long id;

	if (!dash || (size_t)(dash - name) != strlen(want) ||
	    strncasecmp(name, want, strlen(want)) != 0 || dash[1] < '0' || dash[1] > '9')
		return false;
	id = strtoul(dash + 1, &end, 10);
	if (*end || id == 0 || id > UINT32_MAX)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

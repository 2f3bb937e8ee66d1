// SPDX-License-Identifier: Apache-2.0
#include "userspace/scenarios/scenario.h"

#include <string.h>

#include "userspace/base/auto.h"

extern const char scenario_blob[], scenario_blob_end[];

const struct scenario *scenario_at(size_t i)
{
	const struct scenario *const tables[] = { scenarios_sandbox, scenarios_conduct };

	for (size_t t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct scenario *s = tables[t]; s->id; s++)
			if (i-- == 0)
				return s;
	return NULL;
}

static void judge_by(struct scenario *s, const struct scenario *v)
{
	s->expect = v->expect;
	if (v->attack)
		s->attack = v->attack;
	memcpy(s->detect, v->detect, sizeof(s->detect));
	memcpy(s->rules, v->rules, sizeof(s->rules));
	memcpy(s->inner, v->inner, sizeof(s->inner));
	s->reason = v->reason;
	s->killer = v->killer;
	s->no_observing = v->no_observing;
	s->no_twin = v->no_twin;
	s->remark = v->remark;
}

struct scenario scenario_under(const struct scenario *s, const char *backend)
{
	struct scenario ret = *s;

	if (!backend || strcmp(backend, "gvisor") != 0)
		return ret;
	for (const struct scenario *v = scenarios_gvisor; v->id; v++)
		if (!strcmp(v->id, s->id))
			judge_by(&ret, v);
	return ret;
}

bool scenario_is(const struct scenario *s, struct str id)
{
	struct str whole = str_from(s->id);

	return str_eq(whole, id) || (id.n == 3 && whole.n > 3 && str_starts(whole, id));
}

struct str scenario_payload(void)
{
	return (struct str){ scenario_blob, (size_t)(scenario_blob_end - scenario_blob) };
}

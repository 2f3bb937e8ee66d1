// SPDX-License-Identifier: Apache-2.0
#include "userspace/scenarios/scenario.h"

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

bool scenario_is(const struct scenario *s, struct str id)
{
	struct str whole = str_from(s->id);

	return str_eq(whole, id) || (id.n == 3 && whole.n > 3 && str_starts(whole, id));
}

struct str scenario_payload(void)
{
	return (struct str){ scenario_blob, (size_t)(scenario_blob_end - scenario_blob) };
}

// SPDX-License-Identifier: Apache-2.0
#include "exporters/gate.h"

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

static int open_filter(struct gate *g, const char *text, struct err *err)
{
	int r;

	if (!g->ops)
		return err_set(err, ENOTSUP, "property 'filter': there are no filters here");
	r = g->ops->open(&g->filter, text, err);
	return r < 0 ? err_wrap(err, r, "property 'filter'") : 0;
}

int gate_open(struct gate *g, const struct exporter_config *cfg,
	      const struct export_filter_ops *ops, struct err *err)
{
	const char *filter = exporter_config_get(cfg, "filter");
	const char *rate = exporter_config_get(cfg, "rate");
	uint64_t n = 0;

	*g = (struct gate){ .ops = ops };
	if (rate && *rate && (parse_u64(rate, &n) < 0 || !n || n > NSEC_PER_SEC))
		return err_set(err, EINVAL,
			       "property 'rate': '%s' is no number of records a second", rate);
	g->interval_ns = n ? NSEC_PER_SEC / n : 0;
	return filter && *filter ? open_filter(g, filter, err) : 0;
}

void gate_close(struct gate *g)
{
	if (g->filter)
		g->ops->free(g->filter);
	g->filter = NULL;
}

bool gate_wants(struct gate *g, struct str json)
{
	if (!g->filter || g->ops->match(g->filter, json))
		return true;
	g->skipped++;
	return false;
}

/* The generic cell rate algorithm: one number, exact over any time. */
bool gate_is_open(const struct gate *g, uint64_t now, uint64_t *ret_at)
{
	if (!g->interval_ns || g->due <= now + GATE_BURST_NS)
		return true;
	*ret_at = g->due - GATE_BURST_NS;
	return false;
}

void gate_passed(struct gate *g, uint64_t now)
{
	if (g->interval_ns)
		g->due = MAX(g->due, now) + g->interval_ns;
}

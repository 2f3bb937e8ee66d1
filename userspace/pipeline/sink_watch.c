// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/sink_watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"

#define RATE_WEIGHT 0.3 /* of the newest look */

struct teller {
	struct sink_watch *watch;
	struct sink_watched *sink;
	uint64_t now;
	void (*say)(void *arg, const char *text);
	void *arg;
};

/* May this sink be talked about now? */
static bool may_tell(const struct teller *t)
{
	return t->watch->told < SINK_EVENTS_MAX &&
	       (!t->sink->told_at || t->now - t->sink->told_at >= SINK_EVENT_NS);
}

__attribute__((format(printf, 2, 3))) static void tell(struct teller *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->sink->told_at = t->now;
	if (++t->watch->told == SINK_EVENTS_MAX)
		t->say(t->arg, "sinks: no more events about them in this session");
	else
		t->say(t->arg, text);
}

static void look_at(struct teller *t, const struct fanout_status *row, uint64_t last)
{
	struct sink_watched *s = t->sink;

	if (row->up)
		s->down_since = 0;
	else if (!s->down_since)
		s->down_since = t->now;
	if (!may_tell(t))
		return;
	if (row->poison > s->told_poison) {
		tell(t, "sink '%s' refused %llu records for good, they are dead letters: %s",
		     row->name, (unsigned long long)(row->poison - s->told_poison), row->why);
		s->told_poison = row->poison;
	} else if (row->errors > s->told_errors) {
		tell(t, "sink '%s': %s", row->name, row->text);
		s->told_errors = row->errors;
	} else if (!s->told_down && s->down_since && t->now - s->down_since >= SINK_DOWN_NS) {
		tell(t, "sink '%s' takes nothing: %s", row->name, row->text);
		s->told_down = true;
	} else if (s->told_down && row->up) {
		tell(t, "sink '%s' takes events again, %llu to go", row->name,
		     (unsigned long long)fanout_status_lag(row, last));
		s->told_down = false;
	}
}

void sink_watch_look(struct sink_watch *w, const struct fanout_status *rows, size_t n,
		     uint64_t last, uint64_t now, void (*say)(void *arg, const char *text),
		     void *arg)
{
	uint64_t since = w->next ? now - (w->next - SINK_WATCH_NS) : 0;

	w->next = now + SINK_WATCH_NS;
	w->rows_n = MIN(n, (size_t)FANOUT_SINKS_MAX);
	memcpy(w->rows, rows, w->rows_n * sizeof(*rows));
	for (size_t i = 0; i < w->rows_n; i++) {
		struct sink_watched *s = &w->sinks[i];
		struct teller t = { w, s, now, say, arg };

		if (since) {
			double rate =
				(double)(rows[i].acked - s->acked) * NSEC_PER_SEC / (double)since;

			s->rate += (rate - s->rate) * RATE_WEIGHT;
		}
		s->acked = rows[i].acked;
		look_at(&t, &rows[i], last);
	}
}

bool sink_watch_is_needed(const struct sink_watch *w, uint64_t last)
{
	if (!w->next) /* not looked yet */
		return true;
	for (size_t i = 0; i < w->rows_n; i++)
		if (!w->rows[i].up || fanout_status_lag(&w->rows[i], last) ||
		    w->sinks[i].told_down || w->sinks[i].rate >= 1)
			return true;
	return false;
}

int sink_watch_json(const struct sink_watch *w, uint64_t last, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_array_begin(&j);
	for (size_t i = 0; i < w->rows_n; i++) {
		const struct fanout_status *row = &w->rows[i];
		const struct {
			const char *key;
			uint64_t v;
		} numbers[] = {
			{ "acked", row->acked },
			{ "lag", fanout_status_lag(row, last) },
			{ "rate", (uint64_t)(w->sinks[i].rate + 0.5) },
			{ "dead_letters", row->poison },
			{ "errors", row->errors },
			{ "rewinds", row->rewinds },
			{ "filtered", row->skipped },
		};

		json_object_begin(&j);
		json_key(&j, "name");
		json_strz(&j, row->name);
		json_key(&j, "class");
		json_strz(&j, row->class_name);
		json_key(&j, "up");
		json_bool(&j, row->up);
		json_key(&j, "required");
		json_bool(&j, row->required);
		for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
			json_key(&j, numbers[k].key);
			json_u64(&j, numbers[k].v);
		}
		json_key(&j, "text");
		json_strz(&j, row->text[0] ? row->text : row->why);
		json_object_end(&j);
	}
	json_array_end(&j);
	return out->failed ? -ENOMEM : 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/redaction.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>

#include "userspace/base/arena.h"
#include "userspace/base/log.h"
#include "userspace/redact/escrow.h"
#include "userspace/redact/stream.h"

struct redaction {
	const struct redactor *redactor;
	struct redact *events;
	struct redact_stream *stream[RECORDER_CHANNELS];
	struct output_filter filter;
	struct redact_escrow *escrow; /* NULL: originals are not kept */
};

static struct {
	pthread_mutex_t lock;
	struct redact *x;
} messages = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int feed(void *arg, int channel, struct str in, struct buf *out)
{
	struct redaction *r = arg;

	return redact_stream_feed(r->stream[channel], in, out);
}

static int idle(void *arg, int channel, struct buf *out)
{
	struct redaction *r = arg;

	return redact_stream_idle(r->stream[channel], out);
}

static int flush(void *arg, int channel, struct buf *out)
{
	struct redaction *r = arg;

	return redact_stream_end(r->stream[channel], out);
}

static uint64_t places(void *arg)
{
	const struct redaction *r = arg;
	struct redact_counts c;
	uint64_t n = 0;

	for (int i = 0; i < RECORDER_CHANNELS; i++) {
		redact_counts(redact_stream_redact(r->stream[i]), &c);
		n += c.places;
	}
	return n;
}

static int set_escrow(struct redaction *r, const uint8_t *key)
{
	int e = redact_escrow_new(&r->escrow, key);

	if (e < 0)
		return e;
	redact_set_escrow(r->events, r->escrow);
	for (int i = 0; i < RECORDER_CHANNELS; i++)
		redact_set_escrow(redact_stream_redact(r->stream[i]), r->escrow);
	return 0;
}

int redaction_new(struct redaction **ret, const struct redactor *redactor)
{
	AUTO(redaction) struct redaction *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->redactor = redactor;
	r->filter = (struct output_filter){ feed, idle, flush, places, r };
	e = redact_new(&r->events, redactor);
	for (int i = 0; e == 0 && i < RECORDER_CHANNELS; i++)
		e = redact_stream_new(&r->stream[i], redactor);
	if (e == 0 && redactor_escrow_key(redactor))
		e = set_escrow(r, redactor_escrow_key(redactor));
	if (e < 0)
		return e;
	*ret = take_ptr(r);
	return 0;
}

void redaction_free(struct redaction *r)
{
	if (!r)
		return;
	redact_free(r->events);
	for (int i = 0; i < RECORDER_CHANNELS; i++)
		redact_stream_free(r->stream[i]);
	redact_escrow_free(r->escrow);
	free(r);
}

struct redact *redaction_redact(struct redaction *r)
{
	return r ? r->events : NULL;
}

const struct output_filter *redaction_output(struct redaction *r)
{
	return r ? &r->filter : NULL;
}

int redaction_next_original(struct redaction *r, struct buf *out)
{
	return r && r->escrow ? redact_escrow_next(r->escrow, out) : 0;
}

void redaction_original_lost(struct redaction *r, struct str payload)
{
	redact_escrow_lost(r->escrow, payload);
}

static void member(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void escrow_json(struct redact_escrow *e, struct json *j)
{
	struct redact_escrow_counts c;
	char hex[2 * ESCROW_KEY_LEN + 1];

	redact_escrow_counts(e, &c);
	json_key(j, "escrow");
	json_object_begin(j);
	json_key(j, "key");
	json_strz(j, sodium_bin2hex(hex, sizeof(hex), c.public_key, ESCROW_KEY_LEN));
	member(j, "kept", c.kept);
	member(j, "not_kept", c.not_kept);
	json_object_end(j);
}

void redaction_warn(const struct redaction *r)
{
	struct redact_escrow_counts c;

	if (!r || !r->escrow)
		return;
	redact_escrow_counts(r->escrow, &c);
	if (c.not_kept)
		log_warn(
			"redaction: %llu originals are not in the escrow (%llu are): they were past "
			"its limits, or could not be sealed",
			(unsigned long long)c.not_kept, (unsigned long long)c.kept);
}

void redaction_json(const struct redaction *r, struct json *j)
{
	struct redact_counts c[RECORDER_CHANNELS + 1];
	uint64_t all = 0, limited = 0, values = 0;

	json_object_begin(j);
	json_key(j, "on");
	json_bool(j, r != NULL);
	for (int i = 0; r && i <= RECORDER_CHANNELS; i++) {
		redact_counts(i ? redact_stream_redact(r->stream[i - 1]) : r->events, &c[i]);
		all += c[i].places;
		limited += c[i].limited;
		values += c[i].values;
	}
	if (r) {
		json_key(j, "rules");
		json_strz(j, redactor_hash(r->redactor));
		member(j, "known", redactor_values(r->redactor));
		member(j, "places", all);
		member(j, "limited", limited);
		member(j, "of_known", values);
		json_key(j, "by_rule");
		json_object_begin(j);
		for (size_t k = 0; k < redactor_rules(r->redactor); k++) {
			uint64_t n = 0;

			for (int i = 0; i <= RECORDER_CHANNELS; i++)
				n += c[i].by_rule[k];
			if (n)
				member(j, redactor_rule_name(r->redactor, k), n);
		}
		json_object_end(j);
		if (r->escrow)
			escrow_json(r->escrow, j);
	}
	json_object_end(j);
}

void redaction_of_words(const struct redactor *r, char *const *argv, struct json *j)
{
	AUTO(redact) struct redact *x = NULL;
	struct words_in in = { 0 }, shown;
	struct arena arena;
	struct str *v;
	int n = 0;

	while (argv[in.n])
		in.n++;
	arena_init(&arena, 32 << 20);
	v = arena_alloc(&arena, (in.n + 1) * sizeof(*v));
	for (size_t i = 0; v && i < in.n; i++)
		v[i] = str_from(argv[i]);
	in.v = v;
	shown = in;
	if (r && v)
		n = redact_new(&x, r) < 0 ? -ENOMEM
					  : redact_words(x, WORDS_ARGS, in, &arena, &shown);
	for (size_t i = 0; v && n >= 0 && i < shown.n; i++)
		json_str(j, shown.v[i]);
	arena_done(&arena);
}

/* ---- messages ---- */

void redaction_of_text(char *text, size_t size)
{
	pthread_mutex_lock(&messages.lock);
	if (messages.x)
		redact_in_place(messages.x, text, size);
	pthread_mutex_unlock(&messages.lock);
}

int redaction_of_log(const struct redactor *r)
{
	struct redact *x = NULL;
	int e = r ? redact_new(&x, r) : 0;

	if (e < 0)
		return e;
	pthread_mutex_lock(&messages.lock);
	redact_free(messages.x);
	messages.x = x;
	pthread_mutex_unlock(&messages.lock);
	log_set_filter(x ? redaction_of_text : NULL);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Rule files, and texts in pieces: all in all a stream must say the same as its pieces, but for what is taken out. The
 * first byte: 0 the rest is a file of rules, else it is a text in pieces of so many bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "userspace/redact/stream.h"

static struct redactor *builtin(bool hyperscan)
{
	static const uint8_t key[REDACT_KEY_LEN] = { 1 };
	static struct redactor *made[2];
	struct redactor **r = &made[hyperscan];

	if (*r)
		return *r;
	if (redactor_new(r, key, NULL) < 0 || redactor_add_builtin(*r, NULL) < 0 ||
	    redactor_add_value(*r, "v", STR("correct horse\nbattery")) < 0)
		abort();
	redactor_set_hyperscan_after(*r, hyperscan ? 0 : UINT64_MAX);
	if (redactor_finish(*r, NULL) < 0)
		abort();
	return *r;
}

/* Where the text ends, nor a part with which a known value begins. */
static void check_end(const struct buf *out)
{
	static const char value[] = "correct horse\nbattery";

	for (size_t n = 8; n < sizeof(value) - 1 && n <= out->n; n++)
		if (!memcmp(out->p + out->n - n, value, n))
			abort();
}

static void text(const char *p, size_t n, size_t step)
{
	AUTO(redact_stream) struct redact_stream *s = NULL;
	auto_buf struct buf out = { 0 };
	struct redact_counts c;

	if (redact_stream_new(&s, builtin(false)) < 0)
		return;
	for (size_t at = 0; at < n; at += step) {
		if (redact_stream_feed(s, (struct str){ p + at, MIN(step, n - at) }, &out) < 0)
			return;
		if (step % 3 == 0 && redact_stream_idle(s, &out) < 0)
			return;
	}
	if (redact_stream_end(s, &out) < 0)
		return;
	redact_counts(redact_stream_redact(s), &c);
	if (!c.places && (out.n != n || (n && memcmp(out.p, p, n) != 0)))
		abort();
	if (out.n && memmem(out.p, out.n, "correct horse\nbattery", 21))
		abort();
	check_end(&out);
}

/* Long texts may go through Hyperscan: what is found must be the same. */
static void both(const char *p, size_t n)
{
	struct buf out[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		AUTO(redact) struct redact *x = NULL;

		if (redact_new(&x, builtin(i)) < 0 ||
		    redact_text(x, (struct str){ p, n }, &out[i]) < 0)
			abort();
	}
	if (out[0].n != out[1].n || (out[0].n && memcmp(out[0].p, out[1].p, out[0].n) != 0))
		abort();
	buf_done(&out[0]);
	buf_done(&out[1]);
}

static void rules(const char *p, size_t n)
{
	static const uint8_t key[REDACT_KEY_LEN] = { 1 };
	AUTO(redactor) struct redactor *r = NULL;
	AUTO(redact) struct redact *x = NULL;
	auto_buf struct buf out = { 0 };
	struct err err = { 0 };

	if (redactor_new(&r, key, &err) < 0)
		return;
	if (redactor_add_rules(r, "f", (struct str){ p, n }, &err) < 0 ||
	    redactor_finish(r, &err) < 0 || redact_new(&x, r) < 0)
		return;
	(void)redact_text(x, (struct str){ p, n }, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0]) {
		text((const char *)data + 1, size - 1, data[0]);
		both((const char *)data + 1, size - 1);
	} else {
		rules((const char *)data + 1, size - 1);
	}
	return 0;
}

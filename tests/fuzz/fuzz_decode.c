// SPDX-License-Identifier: Apache-2.0
/* The way of an event up to its JSON line: any bytes as records, one behind the other, by their own
 * length field. Whatever comes out must be a JSON object in UTF-8 that reads back to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/enrich/enrich.h"
#include "userspace/event/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	struct decoder *decoder;
	struct enrich *enrich;
	struct arena arena, back;
	struct event ev, again;
	struct buf one, two;
};

static void check_json(struct fuzz *f)
{
	struct str line;
	struct err err;

	buf_reset(&f->one);
	buf_reset(&f->two);
	arena_reset(&f->back);
	if (event_to_json(&f->ev, &f->one) < 0)
		abort();
	line = (struct str){ f->one.p, f->one.n };
	if (!utf8_is_valid(line) || line.p[0] != '{' || line.p[line.n - 1] != '}')
		abort();
	if (event_from_json(&f->again, &f->back, line, &err) < 0)
		abort();
	if (event_to_json(&f->again, &f->two) < 0 ||
	    !str_eq(line, (struct str){ f->two.p, f->two.n }))
		abort();
}

/* Exactly the record's bytes on the heap, so that ASan sees one byte too far. */
static void feed(struct fuzz *f, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n);
	int r;

	memcpy(copy, p, n);
	arena_reset(&f->arena);
	r = decoder_feed(f->decoder, copy, n, &f->arena, &f->ev);
	free(copy); /* the event must not point into it */
	while (r > 0) {
		r = enrich_apply(f->enrich, &f->ev);
		if (r < 0 && r != -2 /* no such sandbox */)
			abort();
		check_json(f);
		arena_reset(&f->arena);
		r = decoder_more(f->decoder, &f->arena, &f->ev);
	}
	if (r < 0)
		abort();
}

static void fuzz_init(struct fuzz *f)
{
	static const struct ip_addr resolver = { 4, { 10, 0, 0, 1 } };
	struct enrich_limits limits = { .processes = 8, .dns_entries = 8, .files = 8 };
	struct enrich_session one = { .sandbox_id = 1,
				      .session = "01JV8Z6T0Y4M5K2Q9X3W7R1ABC",
				      .name = "a",
				      .real_offset_ns = 1700000000000000000 };
	struct enrich_session two = { .sandbox_id = 2,
				      .session = "01JV8Z6T0Y4M5K2Q9X3W7R1ABD",
				      .memory_limit = 1,
				      .resolvers = &resolver,
				      .resolvers_n = 1 };

	memset(f, 0, sizeof(*f));
	arena_init(&f->arena, 64 << 20);
	arena_init(&f->back, 256 << 20);
	if (decoder_new(&f->decoder) < 0 || enrich_new(&f->enrich, &limits) < 0 ||
	    enrich_session_add(f->enrich, &one) < 0 || enrich_session_add(f->enrich, &two) < 0)
		abort();
}

static void fuzz_done(struct fuzz *f)
{
	decoder_free(f->decoder);
	enrich_free(f->enrich);
	arena_done(&f->arena);
	arena_done(&f->back);
	buf_done(&f->one);
	buf_done(&f->two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;

	fuzz_init(&f);
	while (size >= sizeof(struct wire_hdr)) {
		uint32_t len;

		memcpy(&len, data, sizeof(len));
		if (len < sizeof(struct wire_hdr) || len > size)
			len = (uint32_t)size;
		feed(&f, data, len);
		data += len;
		size -= len;
	}
	if (size)
		feed(&f, data, size);
	fuzz_done(&f);
	return 0;
}

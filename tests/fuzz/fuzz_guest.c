// SPDX-License-Identifier: Apache-2.0
/* A conversation: packets of a sentry in hostile hands, what the host's kernel saw meanwhile, and time that goes by.
 * Input: flags (1: the sentry has a network, 2: the host's view is there), then acts: a byte that says which, two bytes
 * of length, and what it is made of. Whatever comes of it is a record that decodes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi/wire.h"
#include "userspace/event/decode.h"
#include "userspace/pipeline/guest.h"

#define BOOT   5000000000000ull
#define OFFSET 1700000000000000000ll
#define ACTS   512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bed {
	struct guest *g;
	struct decoder *decoder;
	struct arena arena;
	uint64_t now, records;
};

static int hear(void *arg, const void *rec, size_t len)
{
	struct bed *b = arg;
	struct event ev;

	arena_reset(&b->arena);
	if (decoder_feed(b->decoder, rec, len, &b->arena, &ev) < 0)
		abort();
	b->records++;
	return 0;
}

/* What the host's kernel tells is of its form: header, size and kind are right. */
static void mirror(struct bed *b, const uint8_t *data, size_t size)
{
	struct wire_mirror *m = calloc(1, sizeof(*m) + size);

	if (!m)
		abort();
	memcpy(m, data, size < sizeof(*m) ? size : sizeof(*m));
	if (size > sizeof(*m))
		memcpy(m + 1, data + sizeof(*m), size - sizeof(*m));
	m->h.kind = WIRE_MIRROR;
	guest_mirror(b->g, m, size > sizeof(*m) ? size : sizeof(*m), b->now);
	free(m);
}

static void packet(struct bed *b, const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); /* ASan sees one byte too far */

	if (!copy)
		abort();
	memcpy(copy, data, size);
	guest_packet(b->g, (struct str){ copy, size }, b->now, OFFSET);
	free(copy);
}

static void act(struct bed *b, uint8_t what, const uint8_t *data, size_t size)
{
	switch (what % 5) {
	case 0:
		packet(b, data, size);
		break;
	case 1:
		mirror(b, data, size);
		break;
	case 2:
		b->now += (uint64_t)size * 10000000;
		guest_tick(b->g, b->now);
		break;
	case 3:
		guest_host_read(b->g, b->now);
		break;
	default:
		if (guest_wants_quiet(b->g, b->now))
			guest_quiet(b->g, what & 16, false);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const watch[] = { "/data/plans" };
	struct bed b = { .now = BOOT };
	struct guest_options opt = { .sandbox_id = 9,
				     .real_offset_ns = OFFSET,
				     .since_ns = BOOT - 30000000000,
				     .watch = watch,
				     .watch_n = 1,
				     .feed = hear,
				     .arg = &b };
	struct guest_stats stats;
	size_t at = 1;

	if (!size)
		return 0;
	opt.has_net = data[0] & 1;
	opt.has_mirror = data[0] & 2;
	arena_init(&b.arena, 4 << 20);
	if (decoder_new(&b.decoder) < 0 || guest_new(&b.g, &opt) < 0)
		abort();
	for (int n = 0; n < ACTS && at + 3 <= size; n++) {
		size_t len = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
		uint8_t what = data[at];

		at += 3;
		if (len > size - at && what % 5 < 2)
			len = size - at;
		act(&b, what, data + at, len);
		at += what % 5 < 2 ? len : 0;
	}
	guest_host_read(b.g, UINT64_MAX);
	if (guest_wants_quiet(b.g, b.now))
		guest_quiet(b.g, false, true);
	guest_tick(b.g, UINT64_MAX / 2);
	guest_stats(b.g, &stats);
	if (stats.records != b.records || stats.bad > stats.packets)
		abort();
	guest_free(b.g);
	decoder_free(b.decoder);
	arena_done(&b.arena);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Events that a page does not hold, counted: by kind and by time, whatever the session's length. */
#include <errno.h>
#include <stdlib.h>

#include "userspace/replay/report_internal.h"

#define BIN_FIRST_US 1000

int report_density_init(struct report *r)
{
	r->bins = calloc(event_kinds_n * REPORT_BINS, sizeof(*r->bins));
	r->bin_us = BIN_FIRST_US;
	return r->bins ? 0 : -ENOMEM;
}

/* Two bins become one. */
static void widen(struct report *r)
{
	for (size_t k = 0; k < event_kinds_n; k++) {
		uint32_t *b = r->bins + k * REPORT_BINS;

		for (size_t i = 0; i < REPORT_BINS / 2; i++)
			b[i] = b[2 * i] + b[2 * i + 1];
		for (size_t i = REPORT_BINS / 2; i < REPORT_BINS; i++)
			b[i] = 0;
	}
	r->bin_us *= 2;
}

void report_density_add(struct report *r, enum wire_kind kind, uint64_t us)
{
	while (us / r->bin_us >= REPORT_BINS)
		widen(r);
	r->bins[report_kind_index(kind) * REPORT_BINS + us / r->bin_us]++;
}

void report_density_json(const struct report *r, struct json *j)
{
	json_key(j, "density");
	json_object_begin(j);
	json_key(j, "us");
	json_u64(j, r->bin_us);
	json_key(j, "kinds");
	json_object_begin(j);
	for (size_t k = 0; k < event_kinds_n; k++) {
		const uint32_t *b = r->bins + k * REPORT_BINS;
		size_t n = REPORT_BINS;

		while (n && !b[n - 1])
			n--;
		if (!n)
			continue;
		json_key(j, event_kinds[k].name);
		json_array_begin(j);
		for (size_t i = 0; i < n; i++)
			json_u64(j, b[i]);
		json_array_end(j);
	}
	json_object_end(j);
	json_object_end(j);
}

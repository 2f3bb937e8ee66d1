// SPDX-License-Identifier: Apache-2.0
/* What a sentry in hostile hands says of the processes that go on in it. */
#include <stdint.h>
#include <stdlib.h>

#include "userspace/pipeline/guest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(void *arg, const void *rec, size_t len)
{
	(void)arg;
	if (!rec || !len)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct guest_options opt = { .sandbox_id = 1, .feed = feed };
	struct guest *g;

	if (guest_new(&g, &opt) < 0)
		return 0;
	guest_known(g, (struct str){ (const char *)data, size }, 1000000000);
	guest_free(g);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* What a payload in a sandbox says of its steps: any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/scenarios/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_text(const char *text, size_t max)
{
	if (strnlen(text, max) == max)
		abort();
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const inner[SCENARIO_INNER_MAX] = { "- o", "E" };
	struct steps s;

	steps_read(&s, (struct str){ (const char *)data, n }, inner);
	check_text(s.first_open, sizeof(s.first_open));
	check_text(s.first_cannot, sizeof(s.first_cannot));
	/* A line has one verdict: "step did \n" is the shortest. */
	if ((size_t)(s.blocked + s.absent + s.open + s.did + s.cannot + s.inner) * 9 > n ||
	    (s.end && n < 3))
		abort();
	return 0;
}

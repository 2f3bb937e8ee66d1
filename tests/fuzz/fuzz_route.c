// SPDX-License-Identifier: Apache-2.0
/* What a sandbox asks of a route, and what an upstream answers: first byte: which text it is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/egress/route.h"

/* No two dots between slashes, as any server might read it, once `target` was good below a prefix. */
static void check_target(const char *target)
{
	const char *query = strchr(target, '?');

	if (!route_target_is_good(target, "/v1"))
		return;
	for (const char *p = target; (p = strstr(p, "/..")) && (!query || p < query); p++)
		if (!p[3] || strchr("/?\\", p[3]))
			abort();
	if (strpbrk(target, " \r\n\t#"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text, *second;
	size_t n;

	if (size < 2)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	n = strlen(text);
	second = n + 1 < size ? text + n + 1 : NULL;
	switch (data[0] % 4) {
	case 0:
		check_target(text);
		break;
	case 1:
		if (route_header_passes(text, second) && strpbrk(text, "\r\n: \t"))
			abort();
		break;
	case 2:
		if (route_value_is_good(text) && strpbrk(text, "\r\n"))
			abort();
		break;
	default:
		(void)route_host_is(text, "api.egress");
		(void)route_method(text);
	}
	free(text);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The beginning of a TLS connection, as it comes and in two pieces: what is known of less must hold for all. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/egress/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(const uint8_t *p, size_t n, char name[EGRESS_NAME_MAX + 1])
{
	uint8_t *copy = malloc(n ? n : 1);
	const char *why = NULL;
	size_t k;
	int r;

	memcpy(copy, p, n);
	r = egress_tls_name(copy, n, name, &why);
	free(copy);
	if ((r != 0 && r != -EAGAIN && r != -EBADMSG) || (r == -EBADMSG && !why))
		abort();
	if (r == 0 && (!egress_name_is_valid(name, strlen(name), &k) || k != strlen(name)))
		abort();
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char all[EGRESS_NAME_MAX + 1], part[EGRESS_NAME_MAX + 1];
	int r, s;

	if (size == 0)
		return 0;
	r = parse(data + 1, size - 1, all);
	s = parse(data + 1, (size - 1) * data[0] / 255, part);
	if (s != -EAGAIN && (s != r || (s == 0 && strcmp(all, part) != 0)))
		abort();
	return 0;
}

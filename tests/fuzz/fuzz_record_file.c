// SPDX-License-Identifier: Apache-2.0
/* Recorded records from anybody: nothing is handed out that lies outside the file or has a header that
 * does not fit its length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "userspace/capture/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct given {
	size_t bytes;
};

static int on_record(void *arg, const void *rec, size_t len)
{
	struct given *g = arg;
	struct wire_hdr h;
	volatile uint8_t sum = 0;

	if (len < sizeof(h) || len > WIRE_RECORD_MAX)
		abort();
	memcpy(&h, rec, sizeof(h));
	if (h.len != len)
		abort();
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)rec)[i]);
	g->bytes += len;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct given g = { 0 };
	struct err err = { 0 };
	FILE *f;
	int r;

	if (size == 0)
		return 0;
	f = fmemopen((void *)(uintptr_t)data, size, "rb");
	if (!f)
		return 0;
	r = record_file_replay(f, on_record, &g, &err);
	if (g.bytes > size)
		abort();
	if (r < 0 && !err.text[0])
		abort();
	fclose(f);
	return 0;
}

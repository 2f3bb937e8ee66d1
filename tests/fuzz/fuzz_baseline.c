// SPDX-License-Identifier: Apache-2.0
/* The bytes as a baseline file: what is read is written the same again; an error names its place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/baseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct baseline *again(const struct baseline *b, struct buf *text)
{
	struct baseline *c = NULL;

	buf_init(text, 0);
	must(baseline_write(b, text) == 0);
	must(baseline_read(&c, "f", (struct str){ text->p, text->n }, NULL) == 0);
	must(baseline_count(c) == baseline_count(b));
	return c;
}

static void as_file(struct str data)
{
	struct baseline *b = NULL, *c;
	auto_buf struct buf first = { 0 }, second = { 0 };
	struct err err = { 0 };

	if (baseline_read(&b, "f", data, &err) < 0) {
		must(!strncmp(err.text, "f:", 2));
		return;
	}
	c = again(b, &first);
	buf_init(&second, 0);
	must(baseline_write(c, &second) == 0);
	must(first.n == second.n && (!first.n || !memcmp(first.p, second.p, first.n)));
	baseline_free(b);
	baseline_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_file((struct str){ (const char *)data, size });
	return 0;
}

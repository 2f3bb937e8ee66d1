// SPDX-License-Identifier: Apache-2.0
/* A file in YAML or JSON as policies, the agent's and a sink's configuration are: refused with a place, or a list of keys
 * and values within its limits, each at a place of the text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/config/flat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_entry(const struct flat_file *f, size_t i, int lines)
{
	const struct flat_entry *e = &f->v[i];

	must(e->key && e->key[0] && e->value && strlen(e->key) < FLAT_KEY_MAX);
	must(e->line >= 1 && e->line <= lines && e->col >= 1);
	/* A key has one value, or all of them stand in one list. */
	for (size_t k = 0; k < i; k++)
		must(strcmp(f->v[k].key, e->key) != 0 || (f->v[k].in_list && e->in_list));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flat_file f;
	struct err err = { 0 };
	int lines = 1;

	if (size > 16384)
		return 0;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n' || data[i] == '\r' || data[i] >= 0x80; /* NEL, LS, PS */
	if (flat_parse(&f, "fuzz", (const char *)data, size, &err) < 0) {
		must(!strncmp(err_text(&err), "fuzz:", 5));
		return 0;
	}
	must(f.n <= FLAT_ENTRIES_MAX);
	for (size_t i = 0; i < f.n; i++) {
		check_entry(&f, i, lines + 1);
		(void)flat_single(&f, &f.v[i], NULL);
	}
	flat_done(&f);
	return 0;
}

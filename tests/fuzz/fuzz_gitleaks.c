// SPDX-License-Identifier: Apache-2.0
/* TOML of others: what is made of it are rules that load. */
#include <stdint.h>
#include <stdlib.h>

#include "userspace/redact/gitleaks.h"
#include "userspace/redact/redact.h"

static void note(void *arg, const char *rule, const char *text, bool out)
{
	(void)arg;
	(void)out;
	if (!text[0] || !rule)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[REDACT_KEY_LEN];
	AUTO(redactor) struct redactor *r = NULL;
	auto_buf struct buf yaml = { 0 };
	struct gitleaks_result res;
	struct err err = { 0 };

	if (size > 64 * 1024 || gitleaks_import("f", (struct str){ (const char *)data, size },
						&yaml, note, NULL, &res, &err) < 0)
		return 0;
	if (redactor_new(&r, key, NULL) < 0)
		return 0;
	if (res.left_out < res.rules &&
	    redactor_add_rules(r, "y", (struct str){ yaml.p, yaml.n }, &err) < 0 &&
	    err.code != ENOMEM && err.code != E2BIG)
		abort();
	return 0;
}

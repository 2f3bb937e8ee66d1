// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_rules.h"

#include <stdlib.h>

#include "userspace/base/auto.h"
#include "userspace/base/trust.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"

void run_rules_done(struct run_rules *r)
{
	ruleset_free(r->set);
	buf_done(&r->texts);
	baseline_free(r->baseline);
}

static int load_baseline(struct baseline **ret, const char *path)
{
	auto_free char *text = NULL;
	struct err err = { 0 };
	size_t n = 0;
	int r;

	if (!path)
		return 0;
	r = file_read_trusted(path, BASELINE_FILE_MAX, &text, &n, "baseline", &err);
	if (r == 0)
		r = baseline_read(ret, path, (struct str){ text, n }, &err);
	if (r < 0)
		cli_fail(&err);
	return r;
}

int run_rules_load(struct run_rules *ret, const struct option_list *paths, bool builtin,
		   const char *baseline)
{
	struct err err = { 0 };
	int r;

	ret->files = (struct rule_files){
		.builtin = builtin, .trusted = true, .path = paths->v, .n = paths->n
	};
	buf_init(&ret->texts, RULE_TEXTS_MAX);
	r = load_baseline(&ret->baseline, baseline);
	if (r < 0)
		return r;
	r = rule_texts_read(&ret->texts, &ret->files, &err);
	if (r < 0) {
		cli_fail(&err);
		return r;
	}
	return cli_compile_rules(&ret->set, (struct str){ ret->texts.p, ret->texts.n },
				 ret->files.actions);
}

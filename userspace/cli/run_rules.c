// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_rules.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/trust.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"

/* Compiled before anybody asked: what most runs have. */
static struct run_rules ahead;

void run_rules_ahead(void)
{
	const struct option_list none = { 0 };

	if (run_rules_load(&ahead, &none, true, NULL) == 0)
		return;
	run_rules_done(&ahead);
	ahead = (struct run_rules){ 0 }; /* who asks is told */
}

static bool take_ahead(struct run_rules *ret)
{
	if (!ahead.set || ret->texts.n != ahead.texts.n ||
	    ret->files.actions != ahead.files.actions ||
	    memcmp(ret->texts.p, ahead.texts.p, ahead.texts.n) != 0)
		return false;
	ret->set = take_ptr(ahead.set);
	return true;
}

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
	if (take_ahead(ret))
		return 0;
	return cli_compile_rules(&ret->set, (struct str){ ret->texts.p, ret->texts.n },
				 ret->files.actions);
}

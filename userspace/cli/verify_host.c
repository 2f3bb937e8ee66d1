// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/verify_host.h"

#include <stdio.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/trail_check.h"

struct faults {
	struct json j;
	struct buf text;
	bool print;
};

static const struct {
	const char *name, *text;
} fault_words[] = {
	[TRAIL_MISSING] = { "missing", "its record is gone, and nothing says that it was pruned" },
	[TRAIL_OTHER] = { "other",
			  "its record is not the one that was sealed: another, or an older state" },
	[TRAIL_UNLOGGED] = { "unlogged",
			     "its record is here, but the log does not tell of it: put there, or "
			     "made where no log could be written" },
};

static void fault(void *arg, enum trail_fault f, const char *session)
{
	struct faults *all = arg;

	json_object_begin(&all->j);
	json_key(&all->j, "session");
	json_strz(&all->j, session);
	json_key(&all->j, "fault");
	json_strz(&all->j, fault_words[f].name);
	json_object_end(&all->j);
	if (all->print)
		printf("  %s  %s\n", session, fault_words[f].text);
}

static void print_json(const struct trail_check *c, int code, struct str faults)
{
	const struct {
		const char *key;
		uint64_t v;
	} rows[] = { { "entries", c->log.entries }, { "signed", c->log.is_signed },
		     { "sessions", c->sessions },   { "present", c->present },
		     { "unended", c->unended },	    { "pruned", c->pruned },
		     { "elsewhere", c->elsewhere }, { "missing", c->missing },
		     { "other", c->other },	    { "unlogged", c->unlogged } };
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "code");
	json_i64(&j, code);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_key(&j, rows[i].key);
		json_u64(&j, rows[i].v);
	}
	json_key(&j, "head");
	json_strz(&j, c->log.head);
	json_key(&j, "text");
	json_strz(&j, c->log.text);
	json_key(&j, "faults");
	json_raw(&j, faults);
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
}

int verify_host_log(const struct verify_options *opt, bool json, bool quiet)
{
	auto_buf struct buf list = { 0 };
	struct faults all = { .print = !json && !quiet };
	struct trail_check c;
	struct err err = { 0 };
	int code;

	json_init(&all.j, &list);
	json_array_begin(&all.j);
	if (trail_verify(opt, fault, &all, &c, &err) < 0)
		return cli_fail(&err);
	json_array_end(&all.j);
	code = !c.log.good || c.missing || c.other || c.unlogged;
	if (json) {
		print_json(&c, code, (struct str){ list.p, list.n });
	} else if (!quiet) {
		printf("host log  %s\n", c.log.text);
		printf("sessions  %llu: %llu as they were sealed, %llu without an end, %llu pruned, %llu elsewhere, %llu missing, "
		       "%llu not as they were, %llu not in the log\n",
		       (unsigned long long)c.sessions, (unsigned long long)c.present,
		       (unsigned long long)c.unended, (unsigned long long)c.pruned,
		       (unsigned long long)c.elsewhere, (unsigned long long)c.missing,
		       (unsigned long long)c.other, (unsigned long long)c.unlogged);
		printf("head      %s\n", c.log.head);
	}
	return cli_finish_output(code);
}

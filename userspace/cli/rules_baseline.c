// SPDX-License-Identifier: Apache-2.0
/* `warder rules baseline SESSION...`: what is usual, from sessions that somebody approved. */
#include "userspace/cli/rules_baseline.h"

#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"
#include "userspace/enrich/baseline.h"
#include "userspace/pipeline/walk.h"

DEFINE_AUTO(baseline, baseline_free)

static int learn(void *arg, const struct event *ev, struct err *err)
{
	return baseline_learn(arg, ev, err);
}

static int learn_session(struct baseline *b, const char *word, struct err *err)
{
	auto_close int fd = -1;
	uint64_t last = 0;
	int r;

	r = bundle_open(&fd, word, "rules baseline", err);
	if (r == 0)
		r = session_walk(fd, learn, b, &last, err);
	/* Half a session would make the rest of it look new. */
	if (r == 0)
		r = bundle_check_end(fd, last, err);
	return r < 0 ? err_wrap(err, r, "session '%s'", word) : 0;
}

static int put(const struct baseline *b, char *const *sessions, size_t n, struct buf *out)
{
	buf_addz(out, "# Warder baseline, learned from");
	for (size_t i = 0; i < n; i++) {
		buf_addc(out, ' ');
		for (const char *p = sessions[i]; *p; p++)
			buf_addc(out, (unsigned char)*p < ' ' ? '?' : *p);
	}
	buf_addc(out, '\n');
	return baseline_write(b, out);
}

int rules_baseline(char *const *sessions, size_t n, const char *output)
{
	AUTO(baseline) struct baseline *b = NULL;
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };
	int r = baseline_new(&b);

	buf_init(&text, BASELINE_FILE_MAX);
	if (r < 0)
		err_set(&err, r, "%m");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = learn_session(b, sessions[i], &err);
	if (r == 0)
		r = baseline_finish(b);
	if (r == 0 && put(b, sessions, n, &text) < 0)
		r = err_set(&err, EFBIG, "baseline: larger than %zu MiB", BASELINE_FILE_MAX >> 20);
	if (r == 0 && output)
		r = cli_write_file(output, &text, 0644, &err);
	if (r < 0)
		return cli_fail(&err);
	if (!output)
		cli_print(&text);
	return cli_finish_output(0);
}

// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/measured.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/capture/capture.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/run.h"

#define TRIES	     9
#define FILE_NAME    "kill-latency" /* in the state directory: kernel, median, worst */
#define FEATURES_MAX 64

DEFINE_AUTO(ruleset, ruleset_free)

/* The end of a path is nothing that the kernel's tables know: it is user space that decides. */
static const char RULES[] = "- rule: measured kill\n"
			    "  desc: for warder doctor --measure\n"
			    "  condition: kind = file.mkdir and file.path endswith /measured\n"
			    "  output: measured\n"
			    "  priority: DEBUG\n"
			    "  action: kill\n";

bool host_prevents(void)
{
	auto_free struct capture_feature *rows = calloc(FEATURES_MAX, sizeof(*rows));
	size_t n = rows ? capture_features(rows, FEATURES_MAX) : 0;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, "fmod_ret"))
			return rows[i].ok;
	return false;
}

static int state_open(bool make)
{
	if (make)
		dir_make_all(state_dir(), 0711);
	return open(state_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool measured_load(uint64_t *ret_p50_ns, uint64_t *ret_max_ns)
{
	auto_close int dir = state_open(false);
	unsigned long long p50, max;
	auto_free char *text = NULL;
	struct utsname u;
	char kernel[128];

	if (dir < 0 || uname(&u) < 0 || file_read_at(dir, FILE_NAME, 256, &text, NULL) < 0 ||
	    sscanf(text, "%127s %llu %llu", kernel, &p50, &max) != 3 ||
	    strcmp(kernel, u.release) != 0)
		return false;
	*ret_p50_ns = p50;
	*ret_max_ns = max;
	return true;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int try_once(const struct ruleset *rules, uint64_t *ret_ns, struct err *err)
{
	char *argv[] = { "sh", "-c", "mkdir /tmp/measured; exec sleep 60", NULL };
	char dir[] = "/tmp/warder-measure-XXXXXX";
	struct sandbox_spec spec;
	struct run_result res;
	int r;

	sandbox_spec_defaults(&spec);
	spec.argv = argv;
	if (!mkdtemp(dir))
		return err_set(err, errno, "'%s': %m", dir);
	r = run_session(&res,
			&(struct run_options){ .spec = &spec,
					       .rules = rules,
					       .session_dir = dir,
					       .sign = RUN_SIGN_NEVER,
					       .unlogged = true },
			err);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (r < 0)
		return r;
	*ret_ns = res.engine.kill_latency_ns;
	return *ret_ns ? 0
		       : err_set(err, EIO, "measuring: the sandbox was not killed: %s", res.reason);
}

int measured_make(uint64_t *ret_p50_ns, uint64_t *ret_max_ns, struct err *err)
{
	AUTO(ruleset) struct ruleset *rules = NULL;
	auto_close int dir = -1;
	uint64_t ns[TRIES];
	struct utsname u;
	char text[256];
	int r;

	r = ruleset_new(&rules, NULL, NULL);
	if (r == 0)
		r = ruleset_add_text(rules, "measure", str_from(RULES), err);
	if (r == 0)
		r = ruleset_compile(rules, err);
	for (int i = 0; r == 0 && i < TRIES; i++)
		r = try_once(rules, &ns[i], err);
	if (r < 0)
		return r;
	qsort(ns, TRIES, sizeof(*ns), by_size);
	*ret_p50_ns = ns[TRIES / 2];
	*ret_max_ns = ns[TRIES - 1];
	dir = state_open(true);
	if (dir < 0 || uname(&u) < 0)
		return err_set(err, errno, "state directory '%s': %m", state_dir());
	snprintf(text, sizeof(text), "%s %llu %llu\n", u.release, (unsigned long long)*ret_p50_ns,
		 (unsigned long long)*ret_max_ns);
	r = file_replace_at(dir, FILE_NAME, text, strlen(text), 0644);
	return r < 0 ? err_set(err, r, "'%s/" FILE_NAME "': %m", state_dir()) : 0;
}

// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 /* strptime */
#include "userspace/cli/sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/option.h"
#include "userspace/cli/bundle.h"
#include "userspace/pipeline/run.h"

int sessions_open_dir(int *ret_fd, struct err *err)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/sessions", state_dir()) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0 && errno == ENOENT)
		return err_set(err, ENOENT, "no session was recorded here yet (in '%s')", path);
	return *ret_fd < 0 ? err_set(err, errno, "sessions in '%s': %m", path) : 0;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *shown = arg, percent = done * 100 / total;

	if (percent == *shown || total < 50)
		return;
	*shown = percent;
	fprintf(stderr, "\rreading records %3u%%", (unsigned)percent);
	if (done == total)
		fputs("\r                    \r", stderr);
}

int sessions_open_catalog(struct catalog **ret, struct err *err)
{
	auto_close int fd = -1;
	char path[4096];
	struct catalog_sync sync;
	uint64_t shown = UINT64_MAX;
	int r = sessions_open_dir(&fd, err);

	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path), "%s/" CATALOG_NAME, state_dir()) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	r = catalog_open(ret, path, err);
	if (r == 0)
		r = catalog_sync(*ret, fd, isatty(STDERR_FILENO) ? progress : NULL, &shown, &sync,
				 err);
	return r;
}

int sessions_parse_time(const char *text, uint64_t *ret, struct err *err)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d" };
	uint64_t ago, now = clock_real_ns();

	if (parse_duration_ns(text, &ago) == 0 && ago <= now) {
		*ret = now - ago;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);
		time_t t = end && !*end ? timegm(&tm) : -1;

		if (t >= 0) {
			*ret = (uint64_t)t * NSEC_PER_SEC;
			return 0;
		}
	}
	return err_set(err, EINVAL,
		       "'%s' is neither a duration (24h), a date (2026-01-31) nor a time "
		       "(2026-01-31T12:34:56Z)",
		       text);
}

int sessions_find(char ret[ULID_LEN + 1], const char *word, struct err *err)
{
	auto_close int fd = -1;
	int r = bundle_open_id(&fd, ret, word, err);

	if (r == 0 && !ret[0])
		return err_set(err, ENOENT, "'%s' is no session of this host", word);
	return r;
}

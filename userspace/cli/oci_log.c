// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/oci.h"

static const char *path;
static bool as_json;

void oci_log_set(const struct oci_args *a)
{
	path = a->log;
	as_json = a->log_format && !strcmp(a->log_format, "json");
}

static void as_line(struct buf *out, const char *level, const char *text)
{
	char when[RFC3339_NS_LEN + 1];
	struct json j;

	rfc3339_ns(when, clock_real_ns());
	if (!as_json) {
		buf_printf(out, "%s %s: %s\n", when, level, text);
		return;
	}
	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "level");
	json_strz(&j, level);
	json_key(&j, "msg");
	json_strz(&j, text);
	json_key(&j, "time");
	json_strz(&j, when);
	json_object_end(&j);
	buf_addc(out, '\n');
}

void oci_say(const char *level, const char *text)
{
	auto_buf struct buf line = { 0 };
	auto_close int fd = -1;

	if (!path || !*path)
		return;
	as_line(&line, level, text);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd >= 0 && !line.failed)
		(void)!write(fd, line.p, line.n);
}

int oci_fail(const struct err *err)
{
	log_error("%s", err_text(err));
	oci_say("error", err_text(err));
	return 1; /* as runtimes do: 125 and more are a container's */
}

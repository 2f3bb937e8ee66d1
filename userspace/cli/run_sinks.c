// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_sinks.h"

#include <errno.h>

#include "userspace/base/buf.h"
#include "userspace/base/log.h"
#include "userspace/cli/sinks.h"

void run_sinks_done(struct run_sinks *s)
{
	for (size_t i = 0; i < s->n; i++)
		exporter_config_done(&s->v[i]);
	if (s->has_witness)
		exporter_config_done(&s->witness);
}

void run_sinks_warn(const struct run_sinks *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const char *text = exporter_config_warning(&s->v[i]);

		if (text)
			log_warn("sink '%s': %s", s->v[i].name, text);
	}
}

int run_sinks_make(struct run_sinks *s, const char *kafka, const struct option_list *exports,
		   struct err *err)
{
	int r;

	if (kafka) {
		auto_buf struct buf text = { 0 };

		if (buf_printf(&text, "kafka:%s", kafka) < 0 || buf_addc(&text, 0) < 0)
			return -ENOMEM;
		r = exporter_config_parse(&s->v[0], text.p, err);
		if (r < 0)
			return err_wrap(err, r, "option '--kafka'");
		s->n++;
	}
	for (size_t i = 0; i < exports->n; i++) {
		if (s->n == FANOUT_SINKS_MAX)
			return err_set(err, E2BIG, "more than %d sinks", FANOUT_SINKS_MAX);
		r = sinks_parse(&s->v[s->n], exports->v[i], err);
		if (r < 0)
			return err_wrap(err, r, "option '--export'");
		s->n++;
	}
	return 0;
}

int run_sinks_witness(struct run_sinks *s, const char *path, enum run_sign *sign, struct err *err)
{
	auto_buf struct buf text = { 0 };
	int r;

	if (*sign == RUN_SIGN_NEVER)
		return err_set(
			err, EINVAL,
			"option '--witness' is about a signed record, and '--sign' says never");
	*sign = RUN_SIGN_ALWAYS;
	buf_addz(&text, "file:");
	for (; *path; path++) {
		if (*path == ',')
			buf_addc(&text, '\\');
		buf_addc(&text, *path);
	}
	buf_addz(&text, ",name=witness");
	if (buf_addc(&text, 0) < 0)
		return -ENOMEM;
	r = exporter_config_parse(&s->witness, text.p, err);
	s->has_witness = r == 0;
	return r < 0 ? err_wrap(err, r, "option '--witness'") : 0;
}

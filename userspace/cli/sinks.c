// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/sinks.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/option.h"
#include "userspace/cli/util.h"

int sinks_path(char *ret, size_t size, struct err *err)
{
	if ((size_t)snprintf(ret, size, "%s/sinks.yaml", config_dir()) >= size)
		return err_set(err, ENAMETOOLONG, "configuration directory: path too long");
	return 0;
}

static int find(const struct flat_file *f, const char *name, const char **ret, struct err *err)
{
	const char *names[64], *near;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (!strcmp(f->v[i].key, name)) {
			int r = flat_single(f, &f->v[i], err);

			if (r < 0)
				return r;
			*ret = f->v[i].value;
			return 0;
		}
		if (n < sizeof(names) / sizeof(names[0]))
			names[n++] = f->v[i].key;
	}
	near = closest_name(name, names, n);
	if (near)
		return err_set(err, ENOENT, "no sink '%s' in %s: did you mean '%s'?", name, f->path,
			       near);
	return err_set(err, ENOENT, "no sink '%s' in %s (a description has a ':' in it)", name,
		       f->path);
}

int sinks_parse(struct exporter_config *cfg, const char *word, struct err *err)
{
	struct flat_file f = { 0 };
	char path[PATH_MAX];
	const char *text = NULL;
	int r;

	if (strchr(word, ':')) {
		r = exporter_config_parse(cfg, word, err);
		exporter_hide_secrets((char *)word); /* argv's, which is ours to write */
		return r;
	}
	r = sinks_path(path, sizeof(path), err);
	if (r < 0)
		return r;
	r = flat_load(&f, path, err);
	if (r < 0)
		return err_wrap(err, r, "sink '%s'", word);
	r = find(&f, word, &text, err);
	if (r == 0) {
		r = exporter_config_parse(cfg, text, err);
		if (r == 0)
			r = exporter_config_set(cfg, "name", word, err);
		if (r < 0) {
			exporter_config_done(cfg);
			err_wrap(err, r, "%s: '%s'", path, word);
		}
	}
	flat_done(&f);
	return r;
}

// SPDX-License-Identifier: Apache-2.0
/* The table of sink classes, and sink descriptions as text. */
#include "exporters/exporter.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/classes.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/option.h"
#include "userspace/base/trust.h"

#define CONFIG_TEXT_MAX	  8192
#define CONFIG_SECRET_MAX (64 * 1024)
#define PROPERTY_LETTERS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

const struct exporter_class *const exporter_classes[] = {
	/* clang-format off: a line each */
	&file_exporter,	  &kafka_exporter,   &syslog_exporter,
	&splunk_exporter, &elastic_exporter, &webhook_exporter,
	&otlp_exporter,	  &metrics_exporter, NULL,
	/* clang-format on */
};

const struct exporter_property exporter_common[] = {
	{ "filter", "EXPR", "",
	  "only records that match this rule condition, e.g. filter=kind = exec or kind = escape",
	  true },
	{ "rate", "N", "", "at most so many records a second; the rest waits in the journal",
	  false },
	{ "format", "NAME", "", "what records look like on the way out; default: native", true },
	{ "required", "yes|no", "no", "keep the journal until this sink took it", false },
	{ 0 },
};

static const struct exporter_class *find_class(const char *name, struct err *err)
{
	const char *names[32] = { NULL }, *near;
	char known[256] = "";
	size_t n = 0;

	for (const struct exporter_class *const *c = exporter_classes; *c; c++) {
		if (!strcmp((*c)->name, name))
			return *c;
		if (n < ARRAY_SIZE(names))
			names[n++] = (*c)->name;
	}
	near = closest_name(name, names, n);
	if (near) {
		err_set(err, EINVAL, "unknown sink class '%s': did you mean '%s'?", name, near);
		return NULL;
	}
	for (size_t i = 0, at = 0; i < n && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       names[i]);
	err_set(err, EINVAL, "unknown sink class '%s': known are %s", name, known);
	return NULL;
}

static const struct exporter_property *find_property(const struct exporter_class *class,
						     const char *key)
{
	for (const struct exporter_property *p = class->properties; p->name; p++)
		if (!strcmp(p->name, key))
			return p;
	for (const struct exporter_property *p = exporter_common; p->name; p++)
		if (!strcmp(p->name, key))
			return p;
	return NULL;
}

static bool has_pass_prefix(const struct exporter_class *class, const char *key)
{
	size_t n = class->pass_prefix ? strlen(class->pass_prefix) : 0;

	return n && !strncmp(key, class->pass_prefix, n) && key[n];
}

static int unknown_key(const struct exporter_class *class, const char *key, struct err *err)
{
	const char *names[EXPORTER_PROPS_MAX + 2] = { NULL }, *near;
	size_t n = 0;

	names[n++] = "name";
	for (const struct exporter_property *p = class->properties; p->name; p++)
		if (n < ARRAY_SIZE(names))
			names[n++] = p->name;
	for (const struct exporter_property *p = exporter_common; p->name; p++)
		if (n < ARRAY_SIZE(names))
			names[n++] = p->name;
	near = closest_name(key, names, n);
	if (near)
		return err_set(err, EINVAL, "sink '%s': unknown property '%s': did you mean '%s'?",
			       class->name, key, near);
	if (class->pass_prefix)
		return err_set(err, EINVAL,
			       "sink '%s': unknown property '%s' (library settings are written "
			       "'%s<name>')",
			       class->name, key, class->pass_prefix);
	return err_set(err, EINVAL, "sink '%s': unknown property '%s'", class->name, key);
}

static bool is_plain_name(const char *name)
{
	if (!*name || *name == '.')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

static int set_name(struct exporter_config *cfg, const char *name, struct err *err)
{
	if (strlen(name) >= sizeof(cfg->name) || !is_plain_name(name))
		return err_set(err, EINVAL,
			       "sink name '%s': expected at most %zu letters, digits, '.', '_' or "
			       "'-', not starting with '.'",
			       name, sizeof(cfg->name) - 1);
	snprintf(cfg->name, sizeof(cfg->name), "%s", name);
	return 0;
}

static int set_format(struct exporter_config *cfg, const char *name, struct err *err)
{
	const struct format *f = format_find(name, err);

	if (!f)
		return err_wrap(err, -EINVAL, "sink '%s'", cfg->class->name);
	if (cfg->class->formats == EXPORT_NO_FORMAT)
		return err_set(err, EINVAL, "sink '%s' sends no records on: no property 'format'",
			       cfg->class->name);
	if (cfg->class->formats == EXPORT_JSON_FORMATS && !f->is_json)
		return err_set(err, EINVAL, "sink '%s' takes JSON: format '%s' is none",
			       cfg->class->name, name);
	cfg->format = f->render ? f : NULL;
	return 0;
}

static void free_secret(char *p)
{
	if (p)
		explicit_bzero(p, strlen(p));
	free(p);
}

int exporter_value(char **ret, const char *key, const char *value, struct err *err)
{
	char *text;
	size_t n;
	int r;

	if (value[0] != '@' || value[1] == '@') {
		text = strdup(value[0] == '@' ? value + 1 : value);
		if (!text)
			return err_set(err, ENOMEM, "out of memory");
		*ret = text;
		return 0;
	}
	r = file_read_trusted(value + 1, CONFIG_SECRET_MAX, &text, &n, "file", err);
	if (r < 0)
		return err_wrap(err, r, "sink property '%s'", key);
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		text[--n] = 0;
	if (memchr(text, 0, n)) {
		free_secret(text);
		return err_set(err, EINVAL, "sink property '%s': '%s' holds a NUL byte", key,
			       value + 1);
	}
	*ret = text;
	return 0;
}

int exporter_config_set(struct exporter_config *cfg, const char *key, const char *value,
			struct err *err)
{
	char *k, *v = NULL;
	int r;

	if (!strcmp(key, "name"))
		return set_name(cfg, value, err);
	if (!find_property(cfg->class, key) && !has_pass_prefix(cfg->class, key))
		return unknown_key(cfg->class, key, err);
	if (!strcmp(key, "format")) {
		r = set_format(cfg, value, err);
		if (r < 0)
			return r;
		value = cfg->format ? value : ""; /* native is the default, by the same name */
	}
	r = exporter_value(&v, key, value, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < cfg->props_n; i++) {
		if (strcmp(cfg->props[i].key, key))
			continue;
		free_secret(cfg->props[i].value);
		cfg->props[i].value = v;
		return 0;
	}
	k = cfg->props_n < EXPORTER_PROPS_MAX ? strdup(key) : NULL;
	if (!k) {
		free_secret(v);
		return err_set(err, E2BIG, "sink '%s': more than %d properties", cfg->class->name,
			       EXPORTER_PROPS_MAX);
	}
	cfg->props[cfg->props_n].key = k;
	cfg->props[cfg->props_n++].value = v;
	return 0;
}

const char *exporter_config_get(const struct exporter_config *cfg, const char *key)
{
	const struct exporter_property *p = find_property(cfg->class, key);

	for (size_t i = 0; i < cfg->props_n; i++)
		if (!strcmp(cfg->props[i].key, key))
			return cfg->props[i].value;
	return p ? p->def : NULL;
}

int exporter_config_copy(struct exporter_config *ret, const struct exporter_config *cfg,
			 struct err *err)
{
	*ret = *cfg;
	for (ret->props_n = 0; ret->props_n < cfg->props_n; ret->props_n++) {
		size_t i = ret->props_n;

		ret->props[i].key = strdup(cfg->props[i].key);
		ret->props[i].value = strdup(cfg->props[i].value);
		if (!ret->props[i].key || !ret->props[i].value) {
			free(ret->props[i].key);
			free_secret(ret->props[i].value);
			exporter_config_done(ret);
			return err_set(err, ENOMEM, "out of memory");
		}
	}
	return 0;
}

const char *exporter_config_warning(const struct exporter_config *cfg)
{
	return cfg->class->warning ? cfg->class->warning(cfg) : NULL;
}

void exporter_config_done(struct exporter_config *cfg)
{
	for (size_t i = 0; i < cfg->props_n; i++) {
		free(cfg->props[i].key);
		free_secret(cfg->props[i].value);
	}
	memset(cfg, 0, sizeof(*cfg));
}

/* The next part of "a,b=c\,d": cuts it off in place, "\," becomes ",". */
static char *next_part(char **pos)
{
	char *start = *pos, *w = start, *p = start;

	if (!start)
		return NULL;
	for (; *p && *p != ','; p++) {
		if (*p == '\\' && p[1] == ',')
			p++;
		*w++ = *p;
	}
	*pos = *p ? p + 1 : NULL;
	*w = 0;
	return start;
}

/* Does the part set something, rather than continue the value before it? What holds anything but the
 * letters of a property before its "=" is part of a filter: "kind in (a, b) and x = y". */
static char *part_value(const struct exporter_config *cfg, char *part, bool first)
{
	char *eq = part + strspn(part, PROPERTY_LETTERS);

	if (*eq != '=' || eq == part)
		return NULL;
	*eq = 0;
	/* The main property may hold "=" itself: only a key we know ends it. */
	if (first && strcmp(part, "name") && !find_property(cfg->class, part) &&
	    !has_pass_prefix(cfg->class, part)) {
		*eq = '=';
		return NULL;
	}
	return eq + 1;
}

static int parse_parts(struct exporter_config *cfg, char *text, struct err *err)
{
	char value[CONFIG_TEXT_MAX], *pos = text, *part;
	const char *key = cfg->class->properties[0].name;
	bool first = true, have = false;
	size_t n = 0;
	int r;

	if (!*text)
		return 0;
	while ((part = next_part(&pos))) {
		char *v = part_value(cfg, part, first);

		if (v) {
			r = have ? exporter_config_set(cfg, key, value, err) : 0;
			if (r < 0)
				return r;
			key = part;
			n = 0;
		} else {
			v = part;
			if (have)
				value[n++] = ',';
		}
		memcpy(value + n, v, strlen(v) + 1); /* all parts together are shorter than text */
		n += strlen(v);
		have = true;
		first = false;
	}
	return exporter_config_set(cfg, key, value, err);
}

static bool is_secret(const char *key, size_t n)
{
	static const char *const words[] = {
		"token", "password",	       "api-key", "secret", "header",
		"proxy", "oauthbearer.config", ".pem"
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (memmem(key, n, words[i], strlen(words[i])))
			return true;
	return false;
}

void exporter_hide_secrets(char *text)
{
	char *main = strchr(text, ':'), *p, *next, *host;
	bool hide = false;

	for (p = main ? main + 1 : text + strlen(text); *p; p = next) {
		size_t key = strspn(p, PROPERTY_LETTERS), n = 0;

		while (p[n] && p[n] != ',')
			n += p[n] == '\\' && p[n + 1] ? 2 : 1;
		next = p + n + !!p[n];
		if (key && p[key] == '=') {
			hide = is_secret(p, key) && (p[key + 1] != '@' || p[key + 2] == '@');
			p += key + 1;
			n -= key + 1;
		}
		if (hide)
			memset(p, '*', n);
	}
	/* A URL may have a user and a password, or be a secret by its path, as chat programs' are. */
	host = main ? strstr(main, "://") : NULL;
	if (!host || strcspn(main, ",") < (size_t)(host - main))
		return;
	host += 3;
	p = memrchr(host, '@', strcspn(host, "/?,"));
	if (p)
		memset(host, '*', (size_t)(p - host));
	p = host + strcspn(host, "/?,");
	if (*p && *p != ',' && !strncmp(text, "webhook:", 8))
		memset(p + 1, '*', strcspn(p + 1, ","));
}

/* class-xxxxxxxx, FNV-1a over what says where the records go. */
static void default_name(struct exporter_config *cfg)
{
	uint32_t h = 2166136261u;

	for (const struct exporter_property *p = cfg->class->properties; p->name; p++) {
		const char *v = p->identity ? exporter_config_get(cfg, p->name) : NULL;

		if (!p->identity)
			continue;
		for (; v && *v; v++)
			h = (h ^ (unsigned char)*v) * 16777619u;
		h = (h ^ 0) * 16777619u;
	}
	/* A sink without them keeps the name that it always had. */
	for (const struct exporter_property *p = exporter_common; p->name; p++) {
		const char *v = p->identity ? exporter_config_get(cfg, p->name) : "";

		for (; *v; v++)
			h = (h ^ (unsigned char)*v) * 16777619u;
	}
	snprintf(cfg->name, sizeof(cfg->name), "%s-%08x", cfg->class->name, h);
}

int exporter_config_parse(struct exporter_config *cfg, const char *text, struct err *err)
{
	char copy[CONFIG_TEXT_MAX], *rest;
	int r;

	memset(cfg, 0, sizeof(*cfg));
	if (strlen(text) >= sizeof(copy))
		return err_set(err, E2BIG, "sink description longer than %zu bytes",
			       sizeof(copy) - 1);
	memcpy(copy, text, strlen(text) + 1);
	rest = strchr(copy, ':');
	if (rest)
		*rest++ = 0;
	cfg->class = find_class(copy, err);
	if (!cfg->class)
		return -EINVAL;
	r = parse_parts(cfg, rest ? rest : copy + strlen(copy), err);
	for (const struct exporter_property *p = cfg->class->properties; r == 0 && p->name; p++) {
		const char *v = exporter_config_get(cfg, p->name);

		if (!p->def && !(v && *v))
			r = err_set(err, EINVAL, "sink '%s': property '%s' (%s) must be given",
				    cfg->class->name, p->name, p->arg);
	}
	if (r < 0) {
		exporter_config_done(cfg);
		return r;
	}
	if (!cfg->name[0])
		default_name(cfg);
	return 0;
}

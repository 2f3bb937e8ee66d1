// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"
#include "userspace/redact/redact.h"

#define TTL ",ttl="

_Static_assert(SANDBOX_SECRET_MAX <= REDACT_VALUE_MAX, "each must be known to redaction");

struct parsed {
	struct str name;
	struct str file;
	uint64_t ttl_ns;
};

static int parse(struct parsed *ret, const char *text, struct err *err)
{
	const char *eq = strchr(text, '='), *ttl = NULL;

	if (!eq || eq == text || !eq[1])
		return err_set(err, EINVAL, "'%s' is not NAME=FILE[,ttl=TIME]", text);
	for (const char *p = strstr(eq, TTL); p; p = strstr(p + 1, TTL))
		ttl = p;
	*ret = (struct parsed){ .name = { text, (size_t)(eq - text) },
				.file = { eq + 1, ttl ? (size_t)(ttl - eq) - 1 : strlen(eq + 1) } };
	if (ttl) {
		int r = parse_duration_ns(ttl + strlen(TTL), &ret->ttl_ns);

		if (r == -ERANGE)
			return err_set(err, EINVAL, "ttl '%s' is too large", ttl + strlen(TTL));
		if (r < 0)
			return err_set(err, EINVAL, "ttl '%s' is not a time like 30s, 5m",
				       ttl + strlen(TTL));
		if (!ret->ttl_ns)
			return err_set(err, EINVAL,
				       "ttl '%s': no time at all (without ttl it stays)",
				       ttl + strlen(TTL));
	}
	return ret->file.n ? 0 : err_set(err, EINVAL, "'%s' names no file", text);
}

int secrets_no_core(struct err *err)
{
	const struct rlimit none = { 0, 0 };

	/* A limit of 0 alone does not keep a core from a program that core_pattern names (core(5)). */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_set(err, errno, "a core file could not be ruled out: %m");
	return 0;
}

int secret_check(const char *text, struct err *err)
{
	struct parsed p;

	return parse(&p, text, err);
}

/* Who called us by sudo reads own files as before. */
static bool is_ours(const struct stat *st)
{
	struct trust t;

	trust_init(&t);
	return trust_uid(&t, st->st_uid);
}

/* Who else may read the file knows the secret, who else may write it chooses it. Up to `max` bytes. */
static ssize_t read_file(const char *name, const char *path, char *ret, size_t max, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	ssize_t n;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "secret '%s': '%s': %m", name, path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "secret '%s': '%s' is not a file", name, path);
	if (!is_ours(&st) || st.st_mode & 077)
		return err_set(err, EPERM,
			       "secret '%s': '%s' must be yours and yours alone (chown, chmod 600)",
			       name, path);
	r = file_trusted(fd, path, err); /* who may write the directory puts another file there */
	if (r < 0)
		return err_wrap(err, r, "secret '%s'", name);
	n = fd_read_full(fd, ret, max);
	return n < 0 ? err_set(err, (int)-n, "secret '%s': '%s': %m", name, path) : n;
}

struct str secret_text(const struct sandbox_secret *x)
{
	size_t n = x->n;

	while (n && (x->value[n - 1] == '\n' || x->value[n - 1] == '\r'))
		n--;
	return (struct str){ x->value, n };
}

static int check_length(const struct sandbox_secret *x, struct err *err)
{
	if (x->n > SANDBOX_SECRET_MAX)
		return err_set(err, E2BIG, "secret '%s': longer than %d bytes", x->name,
			       SANDBOX_SECRET_MAX);
	if (secret_text(x).n < REDACT_VALUE_MIN)
		return err_set(
			err, EINVAL,
			"secret '%s': less than %d bytes: so short a text is found everywhere, "
			"it could not be kept out of the record",
			x->name, REDACT_VALUE_MIN);
	return 0;
}

static int take(struct run_secrets *ret, struct sandbox_spec *spec, const char *text,
		struct err *err)
{
	const size_t i = spec->secrets_n, max = SANDBOX_SECRET_MAX + 1;
	struct sandbox_secret *x = &spec->secrets[i];
	auto_free char *path = NULL;
	struct parsed p;
	ssize_t n;
	int r;

	if (i == SANDBOX_SECRETS_MAX)
		return err_set(err, E2BIG, "more than %d secrets", SANDBOX_SECRETS_MAX);
	r = parse(&p, text, err);
	if (r < 0)
		return r;
	path = strndup(p.file.p, p.file.n);
	ret->name[i] = strndup(p.name.p, p.name.n);
	ret->value[i] = malloc(max);
	if (!path || !ret->name[i] || !ret->value[i])
		return -ENOMEM;
	ret->n[i] = max;
	n = read_file(ret->name[i], path, ret->value[i], max, err);
	if (n < 0)
		return (int)n;
	*x = (struct sandbox_secret){ ret->name[i], ret->value[i], (size_t)n, p.ttl_ns };
	spec->secrets_n++;
	return check_length(x, err);
}

int secrets_read(struct run_secrets *ret, struct sandbox_spec *spec, const struct option_list *list,
		 struct err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		int r = take(ret, spec, list->v[i], err);

		if (r < 0)
			return err_wrap(err, r, "option '--secret'");
	}
	return 0;
}

int secret_file(const char *name, const char *path, char **ret, struct err *err)
{
	auto_free char *text = calloc(1, SANDBOX_SECRET_MAX + 2);
	struct sandbox_secret x = { .name = name, .value = text };
	ssize_t n = text ? read_file(name, path, text, SANDBOX_SECRET_MAX + 1, err) : -ENOMEM;
	int r;

	if (n < 0)
		return (int)n;
	x.n = (size_t)n;
	r = check_length(&x, err);
	n = (ssize_t)secret_text(&x).n;
	sodium_memzero(text + n, x.n - (size_t)n);
	if (r == 0 && strlen(text) != (size_t)n)
		r = err_set(err, EINVAL, "secret '%s': '%s' is not one line of text", name, path);
	if (r < 0) {
		sodium_memzero(text, x.n);
		return r;
	}
	*ret = take_ptr(text);
	return 0;
}

void secrets_forget(struct run_secrets *s)
{
	for (size_t i = 0; i < SANDBOX_SECRETS_MAX; i++) {
		if (s->value[i])
			sodium_memzero(s->value[i], s->n[i]);
		free(s->value[i]);
		free(s->name[i]);
	}
	*s = (struct run_secrets){ 0 };
}

// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_redact.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/trust.h"
#include "userspace/cli/redact_escrow.h"
#include "userspace/cli/run_secret.h"
#include "userspace/pipeline/run.h"
#include "userspace/redact/gitleaks.h"

#define KEY_FILE "redact.key"

/* <state>/keys/redact.key: 32 bytes, for root only. Made once; two that make it at the same time get the same. */
static int host_key(uint8_t ret[REDACT_KEY_LEN], struct err *err)
{
	auto_close int dir = -1, fd = -1;
	struct stat st;
	int r;

	r = keys_open(&dir, true, err);
	if (r < 0)
		return r;
	fd = openat(dir, KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		char name[64];

		randombytes_buf(ret, REDACT_KEY_LEN);
		snprintf(name, sizeof(name), "." KEY_FILE ".%d", (int)getpid());
		r = file_replace_at(dir, name, ret, REDACT_KEY_LEN, 0600);
		if (r == 0 && linkat(dir, name, dir, KEY_FILE, 0) < 0 && errno != EEXIST)
			r = -errno;
		unlinkat(dir, name, 0);
		if (r < 0)
			return err_set(err, r, "key for redaction: %m");
		fd = openat(dir, KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "key for redaction: %m");
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || st.st_uid != geteuid())
		return err_set(err, EPERM,
			       "key for redaction: keys/" KEY_FILE
			       " is not for root alone (chmod 600)");
	if (fd_read_full(fd, ret, REDACT_KEY_LEN) != REDACT_KEY_LEN)
		return err_set(err, EBADMSG, "key for redaction: keys/" KEY_FILE " is cut");
	return 0;
}

/* Two files of gitleaks with one name: who gave both may have wanted both rules. */
static void warn_of_replaced(const struct redactor *r, size_t before, const char *path)
{
	for (size_t i = before; i < redactor_rules(r); i++)
		for (size_t k = 0; k < before; k++)
			if (!strcmp(redactor_rule_name(r, i), redactor_rule_name(r, k)))
				log_warn(
					"redaction: the rule '%s' of '%s' takes the place of one in a "
					"file before it",
					redactor_rule_name(r, i), path);
}

static void warn_of_lacks(const char *path, const struct gitleaks_result *res)
{
	if (res->left_out)
		log_warn(
			"redaction: %zu of %zu rules of '%s' cannot be used: `warder redact import` "
			"tells which, and why",
			res->left_out, res->rules, path);
	if (res->unknown)
		log_warn(
			"redaction: %zu key%s in '%s' not known: `warder redact import` tells which",
			res->unknown, res->unknown == 1 ? " is" : "s are", path);
}

static int add_gitleaks(struct redactor *r, const char *path, struct str toml,
			struct redact_lacks *lacks, struct err *err)
{
	auto_buf struct buf yaml = { .max = REDACT_FILE_MAX };
	struct gitleaks_result res;
	size_t before = redactor_rules(r);
	int e = gitleaks_import(path, toml, &yaml, lacks ? lacks->note : NULL,
				lacks ? lacks->arg : NULL, &res, err);

	if (e == 0 && lacks) {
		lacks->rules += res.left_out;
		lacks->keys += res.unknown;
	} else if (e == 0) {
		warn_of_lacks(path, &res);
	}
	if (e == 0)
		e = redactor_add_rules(r, path, (struct str){ yaml.p, yaml.n }, err);
	if (e == 0)
		warn_of_replaced(r, before, path);
	return e;
}

static int add_rules(struct redactor *r, const struct option_list *files,
		     struct redact_lacks *lacks, struct err *err)
{
	int e = redactor_add_builtin(r, err);

	for (size_t i = 0; e == 0 && i < files->n; i++) {
		auto_free char *text = NULL;
		size_t n = 0;

		e = file_read_trusted(files->v[i], REDACT_FILE_MAX, &text, &n, "redaction rules",
				      err);
		if (e < 0)
			return e;
		if (str_ends(str_from(files->v[i]), STR(".toml")))
			e = add_gitleaks(r, files->v[i], (struct str){ text, n }, lacks, err);
		else
			e = redactor_add_rules(r, files->v[i], (struct str){ text, n }, err);
	}
	return e;
}

int redactor_of_files(struct redactor **ret, const struct option_list *files,
		      struct redact_lacks *lacks, struct err *err)
{
	AUTO(redactor) struct redactor *r = NULL;
	uint8_t key[REDACT_KEY_LEN];
	int e;

	if (sodium_init() < 0)
		return err_set(err, EIO, "redaction: libsodium cannot be set up");
	randombytes_buf(key, sizeof(key));
	e = redactor_new(&r, key, err);
	if (e == 0)
		e = add_rules(r, files, lacks, err);
	if (e == 0)
		e = redactor_finish(r, err);
	if (e < 0)
		return e;
	*ret = take_ptr(r);
	return 0;
}

static int add_value(struct redactor *r, const char *name, struct str value, struct err *err)
{
	int e = redactor_add_value(r, name, value);

	if (e == -ERANGE) {
		log_warn(
			"redaction: the value of '%s' is shorter than %d bytes or longer than %d: it "
			"is not looked for in texts",
			name, REDACT_VALUE_MIN, REDACT_VALUE_MAX);
		return 0;
	}
	return e < 0 ? err_set(err, e, "redaction: the value of '%s': %m", name) : 0;
}

static int add_environment(struct redactor *r, const struct sandbox_spec *spec, struct err *err)
{
	int e = 0;

	for (size_t i = 0; e == 0 && i < spec->env_n; i++) {
		const char *eq = strchr(spec->env[i], '=');
		struct str name = { spec->env[i], eq ? (size_t)(eq - spec->env[i]) : 0 };
		char full[REDACT_NAME_MAX + 1];

		if (!eq || !eq[1] || !redact_is_secret_name(name))
			continue;
		snprintf(full, sizeof(full), "env.%.*s", (int)name.n, name.p);
		e = add_value(r, full, str_from(eq + 1), err);
	}
	return e;
}

static int add_secrets(struct redactor *r, const struct sandbox_spec *spec, struct err *err)
{
	int e = 0;

	for (size_t i = 0; e == 0 && i < spec->secrets_n; i++) {
		char full[REDACT_NAME_MAX + 1];

		snprintf(full, sizeof(full), "secret.%s", spec->secrets[i].name);
		e = add_value(r, full, secret_text(&spec->secrets[i]), err);
	}
	return e;
}

/* Also the part behind a scheme, as it may be written alone: "Bearer ...". */
static int add_routes(struct redactor *r, const struct sandbox_spec *spec, struct err *err)
{
	int e = 0;

	for (size_t i = 0; i < spec->net_routes_n; i++)
		for (size_t k = 0; e == 0 && k < spec->net_routes[i].headers; k++) {
			const char *value = spec->net_routes[i].header[k].value;
			const char *space = value ? strchr(value, ' ') : NULL;
			char full[REDACT_NAME_MAX + 1];

			snprintf(full, sizeof(full), "route.%.32s", spec->net_routes[i].name);
			if (value)
				e = add_value(r, full, str_from(value), err);
			if (e == 0 && space && strlen(space + 1) >= REDACT_VALUE_MIN)
				e = add_value(r, full, str_from(space + 1), err);
		}
	return e;
}

/* Who may read or write that file knows or chooses the secrets: root alone. */
static int add_file(struct redactor *r, const char *path, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	auto_buf struct buf text = { .max = REDACT_FILE_MAX };
	struct stat st;
	char *line, *save = NULL;
	int e;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "option '--redact-value-file': '%s': %m", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, EPERM,
			       "option '--redact-value-file': '%s' must be a file for its owner "
			       "alone, root (chmod 600)",
			       path);
	e = fd_read_rest(fd, &text);
	if (e == 0)
		e = buf_addc(&text, 0);
	if (e < 0)
		return err_set(err, e, "option '--redact-value-file': '%s': %m", path);
	for (line = strtok_r(text.p, "\r\n", &save); e == 0 && line;
	     line = strtok_r(NULL, "\r\n", &save))
		e = add_value(r, "value", str_from(line), err);
	sodium_memzero(text.p, text.n);
	return e;
}

static int check_off(const struct redact_args *a, const struct sandbox_spec *spec, bool *ret,
		     struct err *err)
{
	*ret = false;
	for (size_t i = 0; i < a->rules.n; i++)
		*ret |= !strcmp(a->rules.v[i], "off");
	if (!*ret)
		return 0;
	if (spec->secrets_n || spec->net_routes_n)
		return err_set(err, EINVAL,
			       "option '--redact': 'off' would leave the value of '--secret' or "
			       "'--net-route' in the record");
	if (a->rules.n != 1 || a->values.n || a->value_files.n || a->escrow)
		return err_set(err, EINVAL,
			       "option '--redact': 'off' and something to redact contradict each "
			       "other");
	return 0;
}

static int add_escrow(struct redactor *r, const char *path, struct err *err)
{
	uint8_t public_key[ESCROW_KEY_LEN];
	int e = redact_escrow_key_file(public_key, path, err);

	if (e < 0)
		return err_wrap(err, e, "option '--redact-escrow'");
	redactor_set_escrow_key(r, public_key);
	return 0;
}

static int make(struct redactor **ret, const uint8_t key[REDACT_KEY_LEN],
		const struct redact_args *a, const struct sandbox_spec *spec, struct err *err)
{
	AUTO(redactor) struct redactor *r = NULL;
	int e = redactor_new(&r, key, err);

	if (e == 0)
		e = add_rules(r, &a->rules, NULL, err);
	if (e == 0)
		e = add_environment(r, spec, err);
	if (e == 0)
		e = add_secrets(r, spec, err);
	if (e == 0)
		e = add_routes(r, spec, err);
	for (size_t i = 0; e == 0 && i < a->values.n; i++)
		e = add_value(r, "value", str_from(a->values.v[i]), err);
	for (size_t i = 0; e == 0 && i < a->value_files.n; i++)
		e = add_file(r, a->value_files.v[i], err);
	if (e == 0 && a->escrow)
		e = add_escrow(r, a->escrow, err);
	if (e == 0)
		e = redactor_finish(r, err);
	if (e < 0)
		return e;
	*ret = take_ptr(r);
	return 0;
}

int run_redactor(struct redactor **ret, const struct redact_args *a,
		 const struct sandbox_spec *spec, enum redact_key which, struct err *err)
{
	uint8_t key[REDACT_KEY_LEN];
	bool off;
	int e = check_off(a, spec, &off, err);

	*ret = NULL;
	if (e < 0 || off)
		return e;
	if (sodium_init() < 0)
		return err_set(err, EIO, "redaction: libsodium cannot be set up");
	if (which == REDACT_KEY_HOST || (which == REDACT_KEY_KNOWN && !access(state_dir(), F_OK)))
		e = host_key(key, err);
	else
		randombytes_buf(key, sizeof(key));
	if (e == 0)
		e = make(ret, key, a, spec, err);
	sodium_memzero(key, sizeof(key));
	return e;
}

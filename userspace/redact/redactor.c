// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "userspace/redact/internal.h"

/* Made by rules/packs/embed.sh out of rules/redact/. */
extern const struct {
	const char *name, *text;
	uint64_t n;
} redact_packs[];
extern const uint64_t redact_packs_n;

int redactor_new(struct redactor **ret, const uint8_t key[REDACT_KEY_LEN], struct err *err)
{
	struct redactor *r;

	if (sodium_init() < 0)
		return err_set(err, EIO, "redaction: libsodium cannot be set up");
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(err, ENOMEM, "redaction: %m");
	arena_init(&r->mem, REDACT_MEMORY_MAX);
	memcpy(r->key, key, REDACT_KEY_LEN);
	if (scan_new(&r->scan) < 0) {
		redactor_free(r);
		return err_set(err, ENOMEM, "redaction: %m");
	}
	*ret = r;
	return 0;
}

void redactor_free(struct redactor *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->rules_n; i++) {
		pcre2_code_free(r->rules[i].code);
		for (uint32_t k = 0; k < r->rules[i].not_n; k++)
			pcre2_code_free(r->rules[i].not [k]);
	}
	free(r->rules);
	free(r->pre.v);
	scan_free(r->scan);
	arena_done(&r->mem);
	sodium_memzero(r, sizeof(*r));
	free(r);
}

int redactor_add_rules(struct redactor *r, const char *name, struct str yaml, struct err *err)
{
	crypto_hash_sha256_state sha;
	int e = rules_read(r, name, yaml, err);

	if (e < 0)
		return e;
	crypto_hash_sha256_init(&sha);
	crypto_hash_sha256_update(&sha, r->digest, sizeof(r->digest));
	crypto_hash_sha256_update(&sha, (const unsigned char *)yaml.p, yaml.n);
	crypto_hash_sha256_final(&sha, r->digest);
	return 0;
}

int redactor_add_builtin(struct redactor *r, struct err *err)
{
	int e = 0;

	for (uint64_t i = 0; e == 0 && i < redact_packs_n; i++)
		e = redactor_add_rules(r, redact_packs[i].name,
				       (struct str){ redact_packs[i].text, redact_packs[i].n },
				       err);
	return e;
}

/* What programs do with a file's text before they use it: blanks, line ends and a byte order mark are no part of it. */
static struct str trim(struct str s)
{
	static const char blanks[] = " \t\r\n\v\f";

	if (str_starts(s, STR("\xef\xbb\xbf")))
		s = (struct str){ s.p + 3, s.n - 3 };
	while (s.n && s.p[s.n - 1] && strchr(blanks, s.p[s.n - 1]))
		s.n--;
	while (s.n && s.p[0] && strchr(blanks, s.p[0]))
		s = (struct str){ s.p + 1, s.n - 1 };
	return s;
}

static void hash_hex(char ret[65], struct str s, const char *behind)
{
	uint8_t hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state sha;

	crypto_hash_sha256_init(&sha);
	crypto_hash_sha256_update(&sha, (const unsigned char *)s.p, s.n);
	crypto_hash_sha256_update(&sha, (const unsigned char *)behind, strlen(behind));
	crypto_hash_sha256_final(&sha, hash);
	sodium_bin2hex(ret, 65, hash, sizeof(hash));
}

bool is_hash_of_value(const struct redactor *r, struct str hex)
{
	for (size_t i = 0; i < r->values_n; i++)
		for (int k = 0; k < VALUE_HASHES; k++)
			if (str_eqz(hex, r->values[i].sha256[k]))
				return true;
	return false;
}

int redactor_add_value(struct redactor *r, const char *name, struct str value)
{
	struct str copy, given = value;
	struct value *v;

	value = trim(given);
	while (value.n < REDACT_VALUE_MIN && given.n && strchr("\r\n", given.p[given.n - 1]))
		given.n--; /* all blanks: they are it */
	if (value.n < REDACT_VALUE_MIN)
		value = given;
	if (value.n < REDACT_VALUE_MIN || value.n > REDACT_VALUE_MAX)
		return -ERANGE;
	if (r->values_n == REDACT_VALUES_MAX)
		return -E2BIG;
	copy = arena_strndup(&r->mem, value.p, value.n);
	if (!copy.p)
		return -ENOMEM;
	v = &r->values[r->values_n++];
	v->text = copy;
	hash_hex(v->sha256[0], given, "");
	hash_hex(v->sha256[1], copy, "");
	hash_hex(v->sha256[2], copy, "\n");
	hash_hex(v->sha256[3], given, "\n");
	snprintf(v->name, sizeof(v->name), "%s", name);
	for (char *c = v->name; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+",
			    *c))
			*c = '_';
	return value_forms(r, copy, (uint16_t)r->values_n);
}

void redactor_set_escrow_key(struct redactor *r, const uint8_t key[REDACT_KEY_LEN])
{
	memcpy(r->escrow_key, key, REDACT_KEY_LEN);
	r->has_escrow = true;
}

const uint8_t *redactor_escrow_key(const struct redactor *r)
{
	return r->has_escrow ? r->escrow_key : NULL;
}

int redactor_finish(struct redactor *r, struct err *err)
{
	for (size_t i = 0; i < r->rules_n; i++)
		r->pre.digits |= r->rules[i].digits && !r->rules[i].off;
	sodium_bin2hex(r->hash, sizeof(r->hash), r->digest, sizeof(r->digest));
	r->finished = true;
	(void)err;
	return 0;
}

void redactor_set_hyperscan_after(struct redactor *r, uint64_t bytes)
{
	if (r->scan)
		scan_set_after(r->scan, bytes);
}

bool redactor_uses_hyperscan(const struct redactor *r)
{
	return r->scan && scan_is_used(r->scan);
}

size_t redactor_rules(const struct redactor *r)
{
	return r->rules_n;
}

size_t redactor_values(const struct redactor *r)
{
	return r->values_n;
}

const char *redactor_rule_name(const struct redactor *r, size_t i)
{
	return r->rules[i].name;
}

const char *redactor_hash(const struct redactor *r)
{
	return r->hash;
}

static bool has_word(struct str name, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= name.n; i++)
		if (!strncasecmp(name.p + i, word, n))
			return true;
	return false;
}

static bool ends_in(struct str name, const char *word)
{
	size_t n = strlen(word);

	return name.n >= n && !strncasecmp(name.p + name.n - n, word, n);
}

bool redact_is_secret_name(struct str name)
{
	static const char *const words[] = { "secret",	   "token",   "passw",	"passphrase",
					     "credential", "api_key", "apikey", "private_key",
					     "access_key", "auth" };
	static const char *const ends[] = { "_key", "_pass", "_pwd", "_pw", "_dsn", "_sas" };
	static const char *const harmless[] = { "_file", "_path",   "_dir",    "_sock",	  "_id",
						"_name", "_socket", "_host",   "_port",	  "_user",
						"_type", "_method", "_author", "_authors" };

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (ends_in(name, harmless[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (has_word(name, words[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (ends_in(name, ends[i]))
			return true;
	return false;
}

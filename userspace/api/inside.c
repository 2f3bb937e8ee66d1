// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/inside.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

const char inside_read[] =
	"[ -e \"$1\" ] || exit 64; [ -d \"$1\" ] && exit 65; [ -f \"$1\" ] || exit 68\n"
	"[ -r \"$1\" ] || exit 66; printf + && exec cat -- \"$1\"";
/* It appears whole or not at all: who goes away in the middle leaves nothing. */
const char inside_write[] =
	"p=$1; [ -L \"$p\" ] && p=$(readlink -f -- \"$p\"); [ -d \"$p\" ] && exit 65\n"
	"d=${p%/*}; [ \"$d\" = \"$p\" ] && d=.; d=${d:-/}; mkdir -p -- \"$d\" || exit 1\n"
	"t=$d/.warder-$$.part; trap 'rm -f -- \"$t\"' EXIT; trap 'exit 1' HUP INT TERM\n"
	"cat > \"$t\" || exit 1\n"
	"if [ -n \"$2\" ]; then chmod \"$2\" \"$t\"; elif [ -e \"$p\" ]; then "
	"chmod --reference=\"$p\" \"$t\"; fi || exit 1\n"
	"mv -f -- \"$t\" \"$p\"";
const char inside_unlink[] = "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 64; exec rm -rf -- \"$1\"";
const char inside_mkdir[] =
	"[ -d \"$1\" ] && { printf 0; exit 0; }; [ -e \"$1\" ] && exit 67; mkdir -p -- \"$1\" && printf 1";
#define FIND_FORMAT " -printf '%y\\0%s\\0%m\\0%U\\0%G\\0%T@\\0%l\\0%p\\0'"
const char inside_list[] =
	"[ -e \"$1\" ] || exit 64; [ -d \"$1\" ] || exit 67; [ -r \"$1\" ] && [ -x \"$1\" ] || exit 66\n"
	"exec find -H \"$1\" -mindepth 1 -maxdepth \"$2\"" FIND_FORMAT;
const char inside_stat[] =
	"[ -e \"$1\" ] || [ -L \"$1\" ] || exit 64; exec find \"$1\" -maxdepth 0" FIND_FORMAT;

const char *inside_problem(uint64_t code)
{
	switch (code) {
	case INSIDE_NOT_THERE:
		return "is not there";
	case INSIDE_IS_DIR:
		return "is a directory";
	case INSIDE_DENIED:
		return "may not be read in the sandbox";
	case INSIDE_NOT_DIR:
		return "is no directory";
	case INSIDE_NO_FILE:
		return "is no regular file";
	default:
		return NULL;
	}
}

/* ---- what is there ---- */

enum { E_TYPE, E_SIZE, E_MODE, E_UID, E_GID, E_TIME, E_LINK, E_PATH, E_FIELDS };

/* The fields of one entry from *rest; false: there is no whole one. */
static bool cut_entry(struct str *rest, struct str f[E_FIELDS])
{
	for (int i = 0; i < E_FIELDS; i++) {
		const char *end = rest->n ? memchr(rest->p, 0, rest->n) : NULL;

		if (!end)
			return false;
		f[i] = (struct str){ rest->p, (size_t)(end - rest->p) };
		rest->n -= f[i].n + 1;
		rest->p = end + 1;
	}
	return f[E_TYPE].n == 1;
}

static const char *type_word(char c)
{
	return c == 'f' ? "file" : c == 'd' ? "dir" : c == 'l' ? "symlink" : "other";
}

static void put_number(struct json *j, const char *key, struct str text, bool octal)
{
	char z[24] = "";

	memcpy(z, text.p, MIN(text.n, sizeof(z) - 1));
	json_key(j, key);
	json_u64(j, strtoull(z, NULL, octal ? 8 : 10));
}

static void put_permissions(struct json *j, struct str mode)
{
	char z[24] = "", text[10] = "rwxrwxrwx";
	unsigned long m;

	memcpy(z, mode.p, MIN(mode.n, sizeof(z) - 1));
	m = strtoul(z, NULL, 8);
	for (int i = 0; i < 9; i++)
		if (!(m >> (8 - i) & 1))
			text[i] = '-';
	json_key(j, "permissions");
	json_strz(j, text);
}

static void put_time(struct json *j, struct str text)
{
	char z[40] = "", time[RFC3339_NS_LEN + 1], *rest;
	unsigned long long s, ns = 0;

	memcpy(z, text.p, MIN(text.n, sizeof(z) - 1));
	s = strtoull(z, &rest, 10); /* before 1970: nothing of ours */
	if (*rest == '.' && strlen(rest) > 9) {
		rest[10] = 0;
		ns = strtoull(rest + 1, NULL, 10);
	}
	rfc3339_ns(time, MIN(s, 9000000000ull) * NSEC_PER_SEC + MIN(ns, NSEC_PER_SEC - 1));
	json_key(j, "modifiedTime");
	json_strz(j, time);
}

static void put_entry(struct json *j, const struct str f[E_FIELDS])
{
	struct str path = f[E_PATH], name;
	const char *slash;

	while (path.n > 2 && path.p[0] == '.' && path.p[1] == '/')
		path = (struct str){ path.p + 2, path.n - 2 };
	slash = memrchr(path.p, '/', path.n);
	name = slash ? (struct str){ slash + 1, path.n - (size_t)(slash + 1 - path.p) } : path;
	json_object_begin(j);
	json_key(j, "name");
	json_str(j, name);
	json_key(j, "type");
	json_strz(j, type_word(f[E_TYPE].p[0]));
	json_key(j, "path");
	json_str(j, path);
	put_number(j, "size", f[E_SIZE], false);
	put_number(j, "mode", f[E_MODE], true);
	put_permissions(j, f[E_MODE]);
	put_number(j, "uid", f[E_UID], false);
	put_number(j, "gid", f[E_GID], false);
	put_time(j, f[E_TIME]);
	if (f[E_LINK].n) {
		json_key(j, "symlinkTarget");
		json_str(j, f[E_LINK]);
	}
	json_object_end(j);
}

bool inside_entries(struct json *j, struct str text, size_t max)
{
	struct str f[E_FIELDS];

	for (size_t n = 0; n < max && cut_entry(&text, f); n++)
		put_entry(j, f);
	return text.n > 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/store/chain.h"

#define MANIFEST_FORMAT "warder-bundle"

/* ---- a scanner for the outermost object ---- */

struct scan {
	const char *p, *end;
};

static void scan_space(struct scan *s)
{
	while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
		s->p++;
}

static bool scan_char(struct scan *s, char c)
{
	scan_space(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* The text between the quotes, escapes left as they are. */
static bool scan_string(struct scan *s, struct str *ret)
{
	const char *start;

	if (!scan_char(s, '"'))
		return false;
	for (start = s->p; s->p < s->end; s->p++) {
		if (*s->p == '\\') {
			if (++s->p == s->end)
				return false;
		} else if (*s->p == '"') {
			*ret = (struct str){ start, (size_t)(s->p++ - start) };
			return true;
		}
	}
	return false;
}

/* Any value; nesting is counted, not followed. */
static bool scan_value(struct scan *s, struct str *ret)
{
	const char *start;
	unsigned depth = 0;
	struct str ignored;

	scan_space(s);
	start = s->p;
	while (s->p < s->end) {
		char c = *s->p;

		if (c == '"') {
			if (!scan_string(s, &ignored))
				return false;
		} else if (c == '{' || c == '[') {
			depth++;
			s->p++;
		} else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
			break;
		} else if (c == '}' || c == ']') {
			depth--;
			s->p++;
		} else {
			s->p++;
			if (depth == 0)
				continue;
		}
		if (depth == 0)
			break;
	}
	*ret = (struct str){ start, (size_t)(s->p - start) };
	while (ret->n && strchr(" \t\r\n", ret->p[ret->n - 1]))
		ret->n--;
	return depth == 0 && ret->n > 0;
}

static bool value_u64(struct str v, uint64_t *ret)
{
	uint64_t n = 0;

	if (v.n == 0 || v.n > 19 || (v.n > 1 && v.p[0] == '0'))
		return false;
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	}
	*ret = n;
	return true;
}

static bool value_text(struct str v, char *ret, size_t cap)
{
	if (v.n < 2 || v.p[0] != '"' || v.p[v.n - 1] != '"' || v.n - 2 >= cap)
		return false;
	if (memchr(v.p, '\\', v.n) || memchr(v.p, 0, v.n))
		return false;
	memcpy(ret, v.p + 1, v.n - 2);
	ret[v.n - 2] = 0;
	return true;
}

enum member {
	M_FORMAT,
	M_VERSION,
	M_STATE,
	M_SESSION,
	M_RECORDS,
	M_FRAMES,
	M_GAPS,
	M_BYTES,
	M_SEGMENT_COUNT,
	M_HEAD,
	M_REDACTIONS,
	M_TERMINAL,
	M_COUNT,
};

static const char *const MEMBERS[M_COUNT] = {
	[M_FORMAT] = "format",	 [M_VERSION] = "version",	[M_STATE] = "state",
	[M_SESSION] = "session", [M_RECORDS] = "records",	[M_FRAMES] = "frames",
	[M_GAPS] = "gaps",	 [M_BYTES] = "bytes",		[M_SEGMENT_COUNT] = "segment_count",
	[M_HEAD] = "head",	 [M_REDACTIONS] = "redactions", [M_TERMINAL] = "terminal",
};

/* Collects the members we know; a name given twice could mean two things to two readers. */
static int scan_members(struct str text, struct str values[M_COUNT])
{
	struct scan s = { text.p, text.p + text.n };
	struct str key, value;

	if (!scan_char(&s, '{'))
		return -EBADMSG;
	do {
		if (!scan_string(&s, &key) || !scan_char(&s, ':') || !scan_value(&s, &value))
			return -EBADMSG;
		for (int m = 0; m < M_COUNT; m++) {
			if (!str_eqz(key, MEMBERS[m]))
				continue;
			if (values[m].n)
				return -EBADMSG;
			values[m] = value;
		}
	} while (scan_char(&s, ','));
	if (!scan_char(&s, '}'))
		return -EBADMSG;
	scan_space(&s);
	return s.p == s.end ? 0 : -EBADMSG;
}

static bool read_terminal(struct str text, struct manifest_info *m)
{
	struct str v[M_COUNT] = { 0 };

	return scan_members(text, v) == 0 && value_u64(v[M_BYTES], &m->tty_bytes) &&
	       value_u64(v[M_SEGMENT_COUNT], &m->tty_segments);
}

int manifest_parse(struct str text, struct manifest_info *ret)
{
	struct str v[M_COUNT] = { 0 };
	struct manifest_info m = { 0 };

	if (scan_members(text, v) < 0)
		return -EBADMSG;
	if (!str_eqz(v[M_FORMAT], "\"" MANIFEST_FORMAT "\"") || !str_eqz(v[M_VERSION], "1") ||
	    !value_text(v[M_SESSION], m.session, sizeof(m.session)) || !session_is_valid(m.session))
		return -EBADMSG;
	if (str_eqz(v[M_STATE], "\"open\"")) {
		*ret = m;
		return 0;
	}
	m.sealed = true;
	if (!str_eqz(v[M_STATE], "\"sealed\"") || !value_u64(v[M_RECORDS], &m.records) ||
	    !value_u64(v[M_FRAMES], &m.frames) || !value_u64(v[M_GAPS], &m.gaps) ||
	    !value_u64(v[M_BYTES], &m.bytes) || !value_u64(v[M_SEGMENT_COUNT], &m.segments) ||
	    !value_text(v[M_HEAD], m.head, sizeof(m.head)) ||
	    (v[M_REDACTIONS].n && !value_u64(v[M_REDACTIONS], &m.redactions)) ||
	    (v[M_TERMINAL].n && !read_terminal(v[M_TERMINAL], &m)))
		return -EBADMSG;
	*ret = m;
	return 0;
}

/* ---- writing ---- */

static bool is_object(struct str text)
{
	struct scan s = { text.p, text.p + text.n };
	struct str value;

	scan_space(&s);
	if (s.p == s.end || *s.p != '{' || !scan_value(&s, &value))
		return false;
	scan_space(&s);
	return s.p == s.end;
}

static void put_time(struct json *j, const char *key, uint64_t ns)
{
	char text[RFC3339_NS_LEN + 1];

	rfc3339_ns(text, ns);
	json_key(j, key);
	json_strz(j, text);
}

static void put_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void put_hash(struct json *j, const char *key, const uint8_t hash[STORE_HASH_LEN])
{
	char hex[2 * STORE_HASH_LEN + 1];

	hash_to_hex(hex, hash);
	json_key(j, key);
	json_strz(j, hex);
}

static void put_segments(struct json *j, const struct manifest *m)
{
	char name[SEGMENT_NAME_LEN + 1];

	json_key(j, "segments");
	json_array_begin(j);
	for (unsigned i = 0; i < m->n_segments; i++) {
		const struct manifest_segment *s = &m->segments[i];

		segment_name(name, i + 1);
		json_object_begin(j);
		json_key(j, "name");
		json_strz(j, name);
		put_u64(j, "bytes", s->bytes);
		put_u64(j, "first_seq", s->first_seq);
		put_u64(j, "records", s->records);
		put_u64(j, "frames", s->frames);
		put_hash(j, "end", s->end);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_terminal(struct json *j, const struct terminal_end *t)
{
	json_key(j, "terminal");
	json_object_begin(j);
	put_u64(j, "records", t->records);
	put_u64(j, "frames", t->frames);
	put_u64(j, "bytes", t->bytes);
	put_u64(j, "segment_count", t->segments);
	put_hash(j, "head", t->head);
	put_hash(j, "end", t->link);
	json_object_end(j);
}

int manifest_write(struct buf *out, const struct manifest *m)
{
	struct json j;

	if (m->summary.n && !is_object(m->summary))
		return -EINVAL;
	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "format");
	json_strz(&j, MANIFEST_FORMAT);
	put_u64(&j, "version", FORMAT_VERSION);
	json_key(&j, "state");
	json_strz(&j, m->sealed ? "sealed" : "open");
	json_key(&j, "session");
	json_strz(&j, m->session);
	json_key(&j, "tool");
	json_strz(&j, m->tool);
	put_time(&j, "created", m->created_ns);
	if (m->host_key) {
		json_key(&j, "signing");
		json_object_begin(&j);
		json_key(&j, "algorithm");
		json_strz(&j, "ed25519");
		put_hash(&j, "host_key", m->host_key);
		json_object_end(&j);
	}
	if (m->sealed) {
		put_time(&j, "sealed", m->sealed_ns);
		put_u64(&j, "records", m->records);
		put_u64(&j, "frames", m->frames);
		put_u64(&j, "gaps", m->gaps);
		put_u64(&j, "bytes", m->bytes);
		put_u64(&j, "segment_count", m->n_segments);
		if (m->redactions)
			put_u64(&j, "redactions", m->redactions);
		json_key(&j, "hash");
		json_strz(&j, "sha256");
		put_hash(&j, "head", m->head);
		if (m->root)
			put_hash(&j, "merkle_root", m->root);
		put_segments(&j, m);
		if (m->terminal)
			put_terminal(&j, m->terminal);
		json_key(&j, "summary");
		json_raw(&j, m->summary.n ? m->summary : STR("{}"));
	}
	json_object_end(&j);
	buf_addc(out, '\n');
	return out->failed ? -EMSGSIZE : 0;
}

int manifest_load(int dirfd, struct buf *ret)
{
	auto_close int fd = -1;
	struct stat st;

	fd = openat(dirfd, MANIFEST_NAME,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	buf_init(ret, MANIFEST_MAX + 1);
	return fd_read_rest(fd, ret);
}

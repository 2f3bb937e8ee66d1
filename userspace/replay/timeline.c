// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/timeline.h"

#include <errno.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define DEPTH_MAX 12 /* of the indentation */
#define WHO_WIDTH 12

/* What of a kind is worth reading, in reading order; a word that ends with '=' or ' ' stands before its
 * value. Kinds without a row print every field of theirs. */
struct part {
	const char *word;
	enum field_id field;
};

#define PARTS_MAX 8

static const struct {
	enum wire_kind kind;
	struct part parts[PARTS_MAX];
} ROWS[] = {
	{ WIRE_EXEC,
	  { { "", F_PROC_ARGS }, { "script ", F_PROC_SCRIPT }, { "exe ", F_PROC_EXE } } },
	{ WIRE_FORK, { { "process ", F_CHILD_NSPID } } },
	{ WIRE_EXIT, { { "code ", F_EXIT_CODE }, { "signal ", F_EXIT_SIGNAL } } },
	{ WIRE_FILE_OPEN, { { "", F_FILE_PATH }, { "", F_FILE_FLAGS } } },
	{ WIRE_FILE_WRITE, { { "", F_FILE_PATH }, { "bytes ", F_FILE_BYTES } } },
	{ WIRE_FILE_RENAME, { { "", F_FILE_OLD_PATH }, { "to ", F_FILE_PATH } } },
	{ WIRE_FILE_DELETE, { { "", F_FILE_PATH } } },
	{ WIRE_FILE_LINK, { { "", F_FILE_PATH }, { "to ", F_FILE_OLD_PATH }, { "", F_FILE_OP } } },
	{ WIRE_FILE_ATTR,
	  { { "", F_FILE_OP },
	    { "", F_FILE_PATH },
	    { "mode=", F_FILE_MODE },
	    { "uid=", F_FILE_UID },
	    { "gid=", F_FILE_GID },
	    { "", F_FILE_XATTR } } },
	{ WIRE_FILE_MKDIR, { { "", F_FILE_PATH } } },
	{ WIRE_WORKSPACE_CHANGE,
	  { { "", F_FILE_CHANGE },
	    { "", F_FILE_PATH },
	    { "bytes ", F_FILE_SIZE },
	    { "to ", F_FILE_TARGET } } },
	{ WIRE_WORKSPACE_SCAN,
	  { { "created ", F_WORKSPACE_CREATED },
	    { "changed ", F_WORKSPACE_CHANGED },
	    { "deleted ", F_WORKSPACE_DELETED },
	    { "skipped ", F_WORKSPACE_SKIPPED },
	    { "incomplete: ", F_WORKSPACE_WHY } } },
	{ WIRE_SESSION_SNAPSHOT,
	  { { "", F_SNAPSHOT_NAME },
	    { "files ", F_SNAPSHOT_FILES },
	    { "bytes ", F_SNAPSHOT_BYTES },
	    { "sha256 ", F_SNAPSHOT_SHA256 } } },
	{ WIRE_SESSION_RESTORE,
	  { { "", F_SNAPSHOT_NAME },
	    { "of session ", F_SNAPSHOT_SESSION },
	    { "files ", F_SNAPSHOT_FILES },
	    { "sha256 ", F_SNAPSHOT_SHA256 } } },
	{ WIRE_NET_CONNECT,
	  { { "", F_NET_PROTO },
	    { "", F_NET_DST_IP },
	    { "port ", F_NET_DST_PORT },
	    { "name ", F_NET_DST_NAME },
	    { "", F_NET_PATH } } },
	{ WIRE_NET_REQUEST,
	  { { "", F_HTTP_METHOD },
	    { "", F_NET_DST_NAME },
	    { "", F_HTTP_PATH },
	    { "status ", F_HTTP_STATUS },
	    { "", F_NET_REASON } } },
	{ WIRE_NET_LISTEN,
	  { { "", F_NET_PROTO },
	    { "", F_NET_SRC_IP },
	    { "port ", F_NET_SRC_PORT },
	    { "", F_NET_PATH } } },
	{ WIRE_NET_ACCEPT,
	  { { "", F_NET_PROTO }, { "from ", F_NET_DST_IP }, { "port ", F_NET_DST_PORT } } },
	{ WIRE_NET_SEND,
	  { { "", F_NET_PROTO },
	    { "", F_NET_DST_IP },
	    { "port ", F_NET_DST_PORT },
	    { "name ", F_NET_DST_NAME },
	    { "datagrams ", F_NET_COUNT },
	    { "bytes ", F_NET_BYTES_OUT } } },
	{ WIRE_NET_CLOSE,
	  { { "", F_NET_PROTO },
	    { "", F_NET_DST_IP },
	    { "port ", F_NET_DST_PORT },
	    { "sent ", F_NET_BYTES_OUT },
	    { "received ", F_NET_BYTES_IN } } },
	{ WIRE_DNS_QUERY, { { "", F_DNS_NAME }, { "", F_DNS_TYPE } } },
	{ WIRE_DNS_ANSWER,
	  { { "", F_DNS_NAME }, { "", F_DNS_TYPE }, { "", F_DNS_RCODE }, { "", F_DNS_ANSWERS } } },
	{ WIRE_ESCAPE,
	  { { "", F_ESCAPE_TYPE }, { "", F_ESCAPE_DETAIL }, { "to ", F_ESCAPE_TARGET } } },
	{ WIRE_SESSION_START,
	  { { "", F_RUN_COMMAND }, { "backend ", F_RUN_BACKEND }, { "probes ", F_RUN_TIER } } },
	{ WIRE_SESSION_STOP,
	  { { "", F_RUN_REASON }, { "code ", F_EXIT_CODE }, { "signal ", F_EXIT_SIGNAL } } },
	{ WIRE_RULE_ALERT,
	  { { "", F_RULE_PRIORITY },
	    { "", F_RULE_NAME },
	    { ": ", F_RULE_OUTPUT },
	    { "-- ", F_RULE_ENFORCED } } },
	{ WIRE_APPROVAL,
	  { { "", F_ACTION_ID },
	    { "rule ", F_RULE_NAME },
	    { ": ", F_ACTION_RESULT },
	    { "by ", F_ACTION_WHO } } },
	{ WIRE_ACTION,
	  { { "", F_ACTION_TYPE },
	    { "", F_ACTION_SCOPE },
	    { "by rule ", F_RULE_NAME },
	    { ": ", F_ACTION_RESULT },
	    { "by ", F_ACTION_WHO } } },
	{ WIRE_TERMINAL, { { "recorded to ", F_TERMINAL_LAST }, { "bytes ", F_TERMINAL_BYTES } } },
	{ WIRE_GAP,
	  { { "lost ", F_GAP_COUNT }, { "of kind ", F_GAP_KIND }, { "because ", F_GAP_REASON } } },
};

static const struct part *parts_of(enum wire_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++)
		if (ROWS[i].kind == kind)
			return ROWS[i].parts;
	return NULL;
}

bool timeline_part(enum wire_kind kind, size_t i, const char **ret_word, enum field_id *ret_field)
{
	const struct part *parts = parts_of(kind);

	if (!parts || i >= PARTS_MAX || !parts[i].word)
		return false;
	*ret_word = parts[i].word;
	*ret_field = parts[i].field;
	return true;
}

/* ---- values ---- */

static bool needs_quotes(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (strchr(" \t\n'\"$`*?[]{}()<>|&;!#~\\", s.p[i]))
			return true;
	return s.n == 0;
}

static void put_word(struct str s, size_t max, struct buf *out)
{
	bool quotes = needs_quotes(s);

	if (quotes)
		buf_addc(out, '\'');
	text_for_terminal(s, max, out);
	if (quotes)
		buf_addc(out, '\'');
}

static void put_list(const struct str *v, size_t n, size_t max, struct buf *out)
{
	size_t start = out->n;

	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(out, ' ');
		if (out->n - start > max) {
			buf_printf(out, "... (%zu more)", n - i);
			return;
		}
		put_word(v[i], max, out);
	}
}

static void put_answers(const struct event_dns_answer *v, size_t n, size_t max, struct buf *out)
{
	size_t start = out->n;

	for (size_t i = 0; i < n && out->n - start < max; i++) {
		if (i)
			buf_addz(out, ", ");
		text_for_terminal(v[i].type, 20, out);
		buf_addc(out, ' ');
		text_for_terminal(v[i].data, 128, out);
	}
}

int timeline_value(const struct event *ev, enum field_id f, size_t max, struct buf *out)
{
	char text[RFC3339_NS_LEN + 46];

	switch (event_fields[f].type) {
	case FT_STR:
	case FT_MEMBERS:
		text_for_terminal(ev->v[f].s, max, out);
		break;
	case FT_U64:
		buf_printf(out, "%llu", (unsigned long long)ev->v[f].u);
		break;
	case FT_I64:
		buf_printf(out, "%lld", (long long)ev->v[f].i);
		break;
	case FT_BOOL:
		buf_addz(out, ev->v[f].u ? "true" : "false");
		break;
	case FT_TIME:
		rfc3339_ns(text, ev->v[f].u);
		buf_addz(out, text);
		break;
	case FT_HEX:
		buf_printf(out, "0x%llx", (unsigned long long)ev->v[f].u);
		break;
	case FT_IP:
		buf_add(out, text, ip_addr_text(&ev->v[f].ip, text));
		break;
	case FT_STRLIST:
		put_list(ev->v[f].list.v, ev->v[f].list.n, max, out);
		break;
	case FT_ANSWERS:
		put_answers(ev->v[f].answers.v, ev->v[f].answers.n, max, out);
		break;
	case FT_ANCESTORS:
		break;
	}
	return out->failed ? -ENOMEM : 0;
}

static void put_value(const struct event *ev, enum field_id f, struct buf *out)
{
	timeline_value(ev, f, TIMELINE_VALUE_MAX, out);
}

/* ---- lines ---- */

/* What every kind or every process has stands elsewhere in the line, or in `warder events`. */
bool timeline_is_common(enum field_id f)
{
	return event_fields[f].families == FAM_ALL || f == F_OUTCOME || f == F_ERRNO ||
	       f == F_SYSCALL || f == F_TOCTOU || !strncmp(event_fields[f].name, "proc.", 5);
}

static void put_all(const struct event *ev, struct buf *out)
{
	for (int f = 0; f < F_COUNT; f++) {
		if (!event_has(ev, (enum field_id)f) || timeline_is_common((enum field_id)f))
			continue;
		buf_printf(out, " %s=", event_fields[f].name);
		put_value(ev, (enum field_id)f, out);
	}
}

static void put_parts(const struct event *ev, const struct part *p, struct buf *out)
{
	for (size_t i = 0; i < PARTS_MAX && p[i].word; i++) {
		if (!event_has(ev, p[i].field))
			continue;
		if (p[i].word[0] != ':')
			buf_addc(out, ' ');
		buf_addz(out, p[i].word);
		put_value(ev, p[i].field, out);
	}
}

int timeline_what(const struct event *ev, struct buf *out)
{
	const struct part *parts = parts_of(ev->kind);
	/* a verdict repeats the outcome of what it is about: that is not its own */
	bool verdict = ev->kind == WIRE_RULE_ALERT || ev->kind == WIRE_ACTION;
	struct str outcome = verdict ? (struct str){ 0 } : event_str(ev, F_OUTCOME);

	text_for_terminal(event_str(ev, F_KIND), 40, out);
	if (parts)
		put_parts(ev, parts, out);
	else
		put_all(ev, out);
	if (outcome.n && !str_eqz(outcome, "success")) {
		buf_addz(out, " [");
		text_for_terminal(outcome, 20, out);
		if (event_has(ev, F_ERRNO)) {
			buf_addc(out, ' ');
			text_for_terminal(event_str(ev, F_ERRNO), 20, out);
		}
		buf_addc(out, ']');
	}
	return out->failed ? -ENOMEM : 0;
}

static const char *colour_of(const struct event *ev)
{
	switch (ev->kind) {
	case WIRE_RULE_ALERT:
	case WIRE_GAP:
		return "\033[33m";
	case WIRE_ACTION:
	case WIRE_ESCAPE:
	case WIRE_OOM:
		return "\033[31m";
	case WIRE_EXEC:
		return "\033[1m";
	default:
		return NULL;
	}
}

static void put_who(const struct event *ev, struct buf *out)
{
	size_t depth = event_has(ev, F_PROC_ANCESTORS) ? ev->v[F_PROC_ANCESTORS].ancestors.n : 0;
	size_t start, used;

	if (event_has(ev, F_PROC_NSPID))
		buf_printf(out, "%6llu ", (unsigned long long)ev->v[F_PROC_NSPID].u);
	else
		buf_addz(out, "       ");
	start = out->n;
	for (size_t i = 0; i < MIN(depth, (size_t)DEPTH_MAX); i++)
		buf_addz(out, "  ");
	text_for_terminal(event_str(ev, F_PROC_COMM), 64, out);
	used = out->n - start;
	for (; used < WHO_WIDTH; used++)
		buf_addc(out, ' ');
	buf_addc(out, ' ');
}

int timeline_line(struct timeline *t, const struct event *ev, struct buf *out)
{
	uint64_t mono = event_u64(ev, F_MONO), us;
	const char *colour = t->colour ? colour_of(ev) : NULL;
	int r;

	if (!t->start)
		t->start = mono;
	us = mono > t->start ? (mono - t->start) / 1000 : 0;
	buf_printf(out, "%5llu.%06llu ", (unsigned long long)(us / 1000000),
		   (unsigned long long)(us % 1000000));
	put_who(ev, out);
	if (colour)
		buf_addz(out, colour);
	r = timeline_what(ev, out);
	if (colour)
		buf_addz(out, "\033[0m");
	return r < 0 || out->failed ? -ENOMEM : 0;
}

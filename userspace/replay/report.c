// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/report.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/replay/intern.h"
#include "userspace/replay/timeline.h"

#define STRINGS_MAX ((size_t)256 << 20)
#define ROWS_MAX    ((size_t)256 << 20)
#define PAGE_MAX    ((size_t)512 << 20)

/* Built in: userspace/replay/report.{html,css,js}. */
extern const char report_html[], report_css[], report_js[];
extern const uint64_t report_html_n, report_css_n, report_js_n;

struct report {
	struct intern strings, snapshots;
	struct buf rows, text, pairs, session;
	uint64_t events, omitted, mono;
	bool has_start;
	/* of session.start and session.stop */
	char id[64], started[RFC3339_NS_LEN + 1], reason[32], code[24];
};

int report_new(struct report **ret)
{
	struct report *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	buf_init(&r->rows, ROWS_MAX);
	buf_init(&r->text, REPORT_VALUE_MAX * 8);
	buf_init(&r->pairs, 1 << 20);
	buf_init(&r->session, 1 << 20);
	e = intern_init(&r->strings, STRINGS_MAX);
	if (e == 0)
		e = intern_init(&r->snapshots, STRINGS_MAX);
	if (e < 0) {
		report_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	intern_done(&r->strings);
	intern_done(&r->snapshots);
	buf_done(&r->rows);
	buf_done(&r->text);
	buf_done(&r->pairs);
	buf_done(&r->session);
	free(r);
}

/* ---- events ---- */

/* Said once for the whole session, or by the row itself. */
static bool is_constant(enum field_id f)
{
	static const enum field_id constant[] = {
		F_V,	   F_ID,   F_SEQ,    F_KIND,	F_MONO,
		F_SESSION, F_HOST, F_TENANT, F_SANDBOX, F_PROC_ANCESTORS
	};

	for (size_t i = 0; i < ARRAY_SIZE(constant); i++)
		if (constant[i] == f)
			return true;
	return false;
}

static int put_pair(struct report *r, const struct event *ev, enum field_id f)
{
	uint32_t n;
	int e;

	buf_reset(&r->text);
	e = timeline_value(ev, f, REPORT_VALUE_MAX, &r->text);
	if (e == 0)
		e = intern_add(&r->strings, (struct str){ r->text.p, r->text.n }, &n);
	if (e < 0)
		return e;
	return buf_printf(&r->pairs, "%s%d,%u", r->pairs.n ? "," : "", (int)f, n);
}

/* The pairs of the process's fields, or of the others, into r->pairs. */
static int put_pairs(struct report *r, const struct event *ev, bool of_process)
{
	int e = 0;

	buf_reset(&r->pairs);
	for (int f = 0; e == 0 && f < F_COUNT; f++) {
		bool proc = !strncmp(event_fields[f].name, "proc.", 5);

		if (event_has(ev, (enum field_id)f) && proc == of_process &&
		    !is_constant((enum field_id)f) && f != F_TIME)
			e = put_pair(r, ev, (enum field_id)f);
	}
	return e;
}

static uint32_t kind_index(enum wire_kind kind)
{
	for (size_t i = 0; i < event_kinds_n; i++)
		if (event_kinds[i].id == kind)
			return (uint32_t)i;
	return 0;
}

static void keep_str(char *to, size_t n, struct str s)
{
	snprintf(to, n, "%.*s", (int)MIN(s.n, n - 1), s.p ? s.p : "");
}

static int note_session(struct report *r, const struct event *ev)
{
	static const struct {
		const char *key;
		enum field_id field;
	} members[] = {
		{ "command", F_RUN_COMMAND }, { "host", F_HOST },
		{ "sandbox", F_SANDBOX },     { "tenant", F_TENANT },
		{ "backend", F_RUN_BACKEND }, { "tier", F_RUN_TIER },
		{ "policy", F_RUN_POLICY },   { "rules", F_RULE_SET },
	};
	struct json j;

	if (ev->kind == WIRE_SESSION_STOP) {
		keep_str(r->reason, sizeof(r->reason), event_str(ev, F_RUN_REASON));
		snprintf(r->code, sizeof(r->code), "%llu",
			 (unsigned long long)event_u64(ev, F_EXIT_CODE));
	}
	if (r->has_start)
		return 0;
	r->has_start = true;
	r->mono = event_u64(ev, F_MONO);
	keep_str(r->id, sizeof(r->id), event_str(ev, F_SESSION));
	if (event_has(ev, F_TIME))
		rfc3339_ns(r->started, event_u64(ev, F_TIME));
	json_init(&j, &r->session);
	json_object_begin(&j);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		buf_reset(&r->text);
		json_key(&j, members[i].key);
		if (event_has(ev, members[i].field))
			timeline_value(ev, members[i].field, REPORT_VALUE_MAX, &r->text);
		json_str(&j, (struct str){ r->text.p, r->text.n });
	}
	json_object_end(&j);
	return r->session.failed ? -ENOMEM : 0;
}

int report_add(struct report *r, const struct event *ev)
{
	uint64_t mono = event_u64(ev, F_MONO);
	uint32_t snapshot, what;
	int e;

	e = note_session(r, ev);
	if (e < 0)
		return e;
	if (r->events == REPORT_EVENTS_MAX) {
		r->omitted++;
		return 0;
	}
	e = put_pairs(r, ev, true);
	if (e == 0)
		e = intern_add(&r->snapshots, (struct str){ r->pairs.p, r->pairs.n }, &snapshot);
	if (e == 0)
		e = put_pairs(r, ev, false);
	buf_reset(&r->text);
	if (e == 0)
		e = timeline_what(ev, &r->text);
	if (e == 0)
		e = intern_add(&r->strings, (struct str){ r->text.p, r->text.n }, &what);
	if (e < 0)
		return e;
	buf_printf(&r->rows, "%s[%llu,%lld,%u,%u,%u,[", r->events ? "," : "",
		   (unsigned long long)event_u64(ev, F_SEQ), (long long)(mono - r->mono) / 1000,
		   kind_index(ev->kind), snapshot, what);
	buf_add(&r->rows, r->pairs.p, r->pairs.n);
	buf_addz(&r->rows, "]]");
	/* rounding must not add up */
	r->mono += (uint64_t)((long long)(mono - r->mono) / 1000 * 1000);
	r->events++;
	return r->rows.failed ? -ENOMEM : 0;
}

/* ---- the page ---- */

static void put_evidence(struct json *j, const struct report_evidence *e)
{
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{ "code", (uint64_t)e->code },
		{ "records", e->records },
		{ "lost", e->lost },
		{ "checkpoints", e->checkpoints },
	};

	json_key(j, "verify");
	json_object_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(j, numbers[i].key);
		json_u64(j, numbers[i].v);
	}
	json_key(j, "text");
	json_strz(j, e->text);
	json_key(j, "head");
	json_strz(j, e->head);
	json_key(j, "host_key");
	json_strz(j, e->host_key);
	json_key(j, "signed");
	json_bool(j, e->is_signed);
	json_key(j, "trusted");
	json_bool(j, e->is_trusted);
	json_object_end(j);
}

static void put_session(struct report *r, struct buf *out)
{
	const struct {
		const char *key, *v;
	} own[] = {
		{ "id", r->id },
		{ "started", r->started },
		{ "reason", r->reason[0] ? r->reason : "not known: the record has no end" },
		{ "code", r->code },
	};

	/* the members gathered at the start, without their closing brace, and ours */
	buf_addz(out, ",\"session\":");
	if (r->session.n)
		buf_add(out, r->session.p, r->session.n - 1);
	else
		buf_addz(out, "{\"command\":\"\"");
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		struct json one;

		buf_printf(out, ",\"%s\":", own[i].key);
		json_init(&one, out);
		json_strz(&one, own[i].v);
	}
	buf_addc(out, '}');
}

static void put_data(struct report *r, const struct report_evidence *e, struct buf *out)
{
	struct buf head;
	struct json j;

	buf_init(&head, 1 << 20);
	json_init(&j, &head);
	json_object_begin(&j);
	put_evidence(&j, e);
	json_key(&j, "omitted");
	json_u64(&j, r->omitted);
	json_key(&j, "kinds");
	json_array_begin(&j);
	for (size_t i = 0; i < event_kinds_n; i++)
		json_strz(&j, event_kinds[i].name);
	json_array_end(&j);
	json_key(&j, "fields");
	json_array_begin(&j);
	for (int f = 0; f < F_COUNT; f++)
		json_strz(&j, event_fields[f].name);
	json_array_end(&j);
	json_object_end(&j);
	buf_add(out, head.p, head.n - 1); /* its object stays open */
	out->failed |= head.failed;
	buf_done(&head);

	buf_addz(out, ",\"strings\":[");
	for (uint32_t i = 0; i < r->strings.n; i++) {
		struct json one;

		if (i)
			buf_addc(out, ',');
		json_init(&one, out);
		json_str(&one, r->strings.v[i]);
	}
	buf_addz(out, "],\"snapshots\":[");
	for (uint32_t i = 0; i < r->snapshots.n; i++) {
		buf_addz(out, i ? ",[" : "[");
		buf_add(out, r->snapshots.v[i].p, r->snapshots.v[i].n);
		buf_addc(out, ']');
	}
	buf_addz(out, "],\"events\":[");
	buf_add(out, r->rows.p, r->rows.n);
	buf_addc(out, ']');
	put_session(r, out);
	buf_addc(out, '}');
}

static int put_deflated(const struct buf *in, struct buf *out)
{
	auto_free unsigned char *packed = NULL;
	z_stream z = { 0 };
	size_t max;
	int e;

	if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	max = deflateBound(&z, in->n);
	packed = malloc(max);
	if (packed) {
		z.next_in = (unsigned char *)in->p;
		z.avail_in = (unsigned)in->n;
		z.next_out = packed;
		z.avail_out = (unsigned)max;
	}
	e = packed && deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : -ENOMEM;
	max = z.total_out;
	deflateEnd(&z);
	if (e == 0)
		e = buf_reserve(out,
				sodium_base64_ENCODED_LEN(max, sodium_base64_VARIANT_ORIGINAL));
	if (e < 0)
		return e;
	sodium_bin2base64(out->p + out->n,
			  sodium_base64_ENCODED_LEN(max, sodium_base64_VARIANT_ORIGINAL), packed,
			  max, sodium_base64_VARIANT_ORIGINAL);
	out->n += strlen(out->p + out->n);
	return 0;
}

/* 'sha256-...' for the page's policy: no script or style but ours runs. */
static void put_source(struct buf *out, const char *text, size_t n)
{
	char b64[sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES,
					   sodium_base64_VARIANT_ORIGINAL)];
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, (const unsigned char *)text, n);
	sodium_bin2base64(b64, sizeof(b64), hash, sizeof(hash), sodium_base64_VARIANT_ORIGINAL);
	buf_printf(out, " 'sha256-%s'", b64);
}

/* A session id that is one; the title is the only text outside of `data`. */
static const char *safe_id(const char *id)
{
	return id[strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-")]
		       ? ""
		       : id;
}

int report_write(struct report *r, const struct report_evidence *e, struct buf *out)
{
	auto_buf struct buf data;
	int n;

	buf_init(&data, PAGE_MAX);
	put_data(r, e, &data);
	if (data.failed)
		return -EMSGSIZE;
	buf_addz(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "base-uri 'none'; form-action 'none'; script-src");
	put_source(out, report_js, report_js_n);
	buf_addz(out, "; style-src");
	put_source(out, report_css, report_css_n);
	buf_printf(
		out,
		"\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n<title>Warder %s</title>\n<style>",
		safe_id(r->id));
	buf_add(out, report_css, report_css_n);
	buf_addz(out, "</style>\n</head>\n<body>\n");
	buf_add(out, report_html, report_html_n);
	buf_addz(out, "<script type=\"text/plain\" id=\"data\">");
	n = put_deflated(&data, out);
	if (n < 0)
		return n;
	buf_addz(out, "</script>\n<script>");
	buf_add(out, report_js, report_js_n);
	buf_addz(out, "</script>\n</body>\n</html>\n");
	return out->failed ? -EMSGSIZE : 0;
}

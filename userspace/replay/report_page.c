// SPDX-License-Identifier: Apache-2.0
/* The page around the data: policy, style, markup, scripts; the data's first and last line. */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/replay/report_internal.h"
#include "userspace/replay/timeline.h"

/* Built in: userspace/replay/web, and the terminal player with its licence. */
extern const char page_html[], style_css[], report_js[], player_css[], player_js[];
extern const uint64_t page_html_n, style_css_n, report_js_n, player_css_n, player_js_n;

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

static void put_policy(struct report *r, struct buf *out)
{
	buf_addz(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "base-uri 'none'; form-action 'none'; script-src");
	put_source(out, report_js, report_js_n);
	if (r->opt.has_terminal) {
		put_source(out, player_js, player_js_n);
		buf_addz(out, " 'wasm-unsafe-eval'"); /* the player's terminal; no other eval */
	}
	buf_addz(out, "; style-src");
	put_source(out, style_css, style_css_n);
	if (r->opt.has_terminal)
		put_source(out, player_css, player_css_n);
	buf_addz(out, "\">\n");
}

static void put_style(struct buf *out, const char *text, uint64_t n)
{
	buf_addz(out, "<style>");
	buf_add(out, text, n);
	buf_addz(out, "</style>\n");
}

static void put_head(struct report *r, struct buf *out)
{
	buf_addz(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
	put_policy(r, out);
	buf_addz(
		out,
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n<title>Warder report</title>\n");
	if (r->opt.has_terminal)
		put_style(out, player_css, player_css_n);
	put_style(out, style_css, style_css_n);
	buf_addz(out, "</head>\n<body>\n");
	buf_add(out, page_html, page_html_n);
	buf_addz(out, "<script type=\"text/plain\" id=\"data\">");
}

/* ---- the first line of the data ---- */

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
		{ "redactions", e->redactions },
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

static void put_fields(struct json *j)
{
	static const char *const types[] = {
		[FT_STR] = "string",	  [FT_U64] = "number",	 [FT_I64] = "number",
		[FT_BOOL] = "bool",	  [FT_TIME] = "time",	 [FT_HEX] = "hex",
		[FT_IP] = "ip",		  [FT_STRLIST] = "list", [FT_ANCESTORS] = "processes",
		[FT_ANSWERS] = "answers",
	};

	json_key(j, "fields");
	json_array_begin(j);
	for (int f = 0; f < F_COUNT; f++) {
		json_array_begin(j);
		json_strz(j, event_fields[f].name);
		json_strz(j, types[event_fields[f].type]);
		json_u64(j, timeline_is_common((enum field_id)f));
		json_strz(j, event_fields[f].doc);
		json_array_end(j);
	}
	json_array_end(j);
}

/* Kinds in the order of their numbers, and how an event of each reads. */
static void put_kinds(struct json *j)
{
	const char *word;
	enum field_id field;

	json_key(j, "kinds");
	json_array_begin(j);
	for (size_t i = 0; i < event_kinds_n; i++)
		json_strz(j, event_kinds[i].name);
	json_array_end(j);
	json_key(j, "parts");
	json_array_begin(j);
	for (size_t i = 0; i < event_kinds_n; i++) {
		json_array_begin(j);
		for (size_t p = 0; timeline_part(event_kinds[i].id, p, &word, &field); p++) {
			json_strz(j, word);
			json_u64(j, field);
		}
		json_array_end(j);
	}
	json_array_end(j);
}

static void put_aliases(struct report *r, struct json *j)
{
	json_key(j, "aliases");
	json_object_begin(j);
	for (size_t i = 0; i < r->opt.aliases_n; i++) {
		json_key(j, r->opt.aliases[i].name);
		json_u64(j, r->opt.aliases[i].field);
	}
	json_object_end(j);
}

/* The manifest as a string: what is in it is parsed by the page, which takes it as it takes everything. */
static void put_manifest(struct report *r, struct json *j)
{
	json_key(j, "manifest");
	json_str(j, r->opt.manifest);
	json_key(j, "from");
	json_u64(j, r->opt.from_ns / 1000);
	json_key(j, "to");
	json_u64(j, r->opt.to_ns / 1000);
	json_key(j, "max");
	json_u64(j, r->opt.events_max);
}

int report_page_begin(struct report *r, const struct report_evidence *e)
{
	auto_buf struct buf page = { 0 }, line = { 0 };
	struct json j;
	int k;

	buf_init(&page, 4 << 20);
	buf_init(&line, 32 << 20);
	put_head(r, &page);
	json_init(&j, &line);
	json_object_begin(&j);
	put_evidence(&j, e);
	put_fields(&j);
	put_kinds(&j);
	put_aliases(r, &j);
	put_manifest(r, &j);
	json_object_end(&j);
	buf_addc(&line, '\n');
	if (page.failed || line.failed)
		return -ENOMEM;
	r->stream.write = r->opt.write;
	r->stream.arg = r->opt.write_arg;
	k = report_stream_text(&r->stream, page.p, page.n);
	if (k == 0)
		k = report_stream_begin(&r->stream);
	if (k == 0)
		k = report_stream_data(&r->stream, (struct str){ line.p, line.n });
	return k;
}

/* ---- the last line, and the page's end ---- */

static void put_last(struct report *r, const char *damage, struct buf *out)
{
	const struct {
		const char *key, *v;
	} own[] = {
		{ "id", r->id },     { "started", r->started }, { "reason", r->reason },
		{ "code", r->code }, { "signal", r->signal },
	};
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{ "omitted", r->omitted },
		{ "frames", r->frames },
		{ "terminal_omitted", r->terminal_omitted },
		{ "blobs_omitted", r->blobs_omitted },
	};
	struct json j;

	/* the members gathered at the start stand first, their object is still open */
	buf_addz(out, "{\"session\":");
	buf_add(out, r->session.n ? r->session.p : "{\"command\":\"\"",
		r->session.n ? r->session.n : strlen("{\"command\":\"\""));
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		buf_printf(out, ",\"%s\":", own[i].key);
		json_init(&j, out);
		json_strz(&j, own[i].v);
	}
	buf_printf(out, ",\"mono\":\"%llu\"},\"counts\":", (unsigned long long)r->first_mono);
	json_init(&j, out);
	json_object_begin(&j);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(&j, numbers[i].key);
		json_u64(&j, numbers[i].v);
	}
	report_density_json(r, &j);
	json_key(&j, "damage");
	json_strz(&j, damage ? damage : "");
	json_object_end(&j);
	buf_addz(out, "}\n");
}

int report_page_end(struct report *r, const char *damage)
{
	auto_buf struct buf page = { 0 }, line = { 0 };
	int k;

	buf_init(&page, 4 << 20);
	buf_init(&line, 8 << 20);
	put_last(r, damage, &line);
	buf_addz(&page, "</script>\n");
	if (r->opt.has_terminal) {
		buf_addz(&page, "<script>");
		buf_add(&page, player_js, player_js_n);
		buf_addz(&page, "</script>\n");
	}
	buf_addz(&page, "<script>");
	buf_add(&page, report_js, report_js_n);
	buf_addz(&page, "</script>\n</body>\n</html>\n");
	if (page.failed || line.failed)
		return -ENOMEM;
	k = report_stream_data(&r->stream, (struct str){ line.p, line.n });
	if (k == 0)
		k = report_stream_end(&r->stream);
	if (k == 0)
		k = report_stream_text(&r->stream, page.p, page.n);
	return k;
}

// SPDX-License-Identifier: Apache-2.0
// ours: exporters
/* render FORMAT < native.jsonl: one rendered record a line. render --samples: native events, one a line, three of
 * each kind: with every field that its kind may have, with nothing but what every event has, and with bytes in
 * every string that no format takes as they are. render --kinds, --fields: names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/render/render.h"
#include "userspace/base/auto.h"

static const char HOSTILE[] = "a|b=c\\d\"e\nf\rg\th]i^\x01\x7f'\xc3\xa9\xff\xe2\x82z";

static struct str text_for(enum field_id f, bool hostile)
{
	static const struct {
		enum field_id field;
		const char *text;
	} rows[] = {
		{ F_OUTCOME, "denied" },
		{ F_FILE_TYPE, "regular" },
		{ F_NET_FAMILY, "inet" },
		{ F_NET_PROTO, "tcp" },
		{ F_DNS_RCODE, "NOERROR" },
		{ F_RULE_PRIORITY, "Critical" },
		{ F_ACTION_TYPE, "kill" },
		{ F_FILE_OP, "chmod" },
		{ F_FILE_PATH, "/workspace/new" },
		{ F_FILE_OLD_PATH, "/tmp/old" },
		{ F_PROC_EXE, "/usr/bin/python3.11" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].field == f)
			return str_from(rows[i].text);
	if (f == F_SESSION)
		return STR("01JV8Z6T0Y4M5K2Q9X3W7R1ABC");
	if (f == F_ID)
		return STR("01JV8Z6T0Y4M5K2Q9X3W7R1ABC-00000007");
	return hostile ? (struct str){ HOSTILE, sizeof(HOSTILE) - 1 }
		       : str_from(event_fields[f].name);
}

static const struct str attacks[] = { STR("T1611"), STR("T1059.004") };
static const struct str args[] = { STR("sh"), STR("-c"), STR("it's a=b|c"), STR(""),
				   STR("\xff\xfe") };
static const struct event_ancestor ancestors[] = {
	{ 9, 900, STR("sh"), STR("/bin/sh") },
	{ 8, 800, STR("make"), STR("/usr/bin/make") },
	{ 7, 700, STR("init"), { 0 } },
};
static const struct event_dns_answer answers[] = {
	{ STR("www.example.org"), STR("CNAME"), STR("example.org"), 60 },
	{ STR("example.org"), STR("A"), STR("192.0.2.7"), 300 },
	{ STR("example.org"), STR("AAAA"), STR("2001:db8::7"), 300 },
};

static void set_field(struct event *ev, enum field_id f, bool hostile)
{
	switch (event_fields[f].type) {
	case FT_STR:
		event_set_str(ev, f, text_for(f, hostile));
		break;
	case FT_MEMBERS:
		event_set_strz(ev, f,
			       "{\"proc.cmdline\":\"sh -c \\\"x\\\"|=\",\"fd.sport\":443,"
			       "\"k8s.ns.name\":null,\"proc.args\":[\"sh\",\"-c\"]}");
		break;
	case FT_I64:
		event_set_i64(ev, f, -1);
		break;
	case FT_BOOL:
		event_set_bool(ev, f, true);
		break;
	case FT_TIME:
		event_set_u64(ev, f, 1700000000123456789);
		break;
	case FT_IP:
		event_set_ip(ev, f, (struct ip_addr){ 4, { 10, 0, 0, (uint8_t)f } });
		break;
	case FT_STRLIST:
		if (f == F_RULE_ATTACK)
			event_set_list(ev, f, attacks, ARRAY_SIZE(attacks));
		else
			event_set_list(ev, f, args, hostile ? ARRAY_SIZE(args) : 4);
		break;
	case FT_ANCESTORS:
		ev->v[f].ancestors.v = ancestors;
		ev->v[f].ancestors.n = ARRAY_SIZE(ancestors);
		event_mark(ev, f);
		break;
	case FT_ANSWERS:
		ev->v[f].answers.v = answers;
		ev->v[f].answers.n = ARRAY_SIZE(answers);
		event_mark(ev, f);
		break;
	case FT_U64:
	case FT_HEX:
		event_set_u64(ev, f, f == F_FILE_MODE ? 0100644 : 40 + (uint64_t)f);
		break;
	}
}

/* 0 every field of the kind, 1 only what is always there, 2 all with hostile strings */
static void print_sample(const struct kind_def *kind, int variant, struct buf *out)
{
	static const enum field_id always[] = { F_ID, F_SEQ, F_TIME, F_SESSION, F_HOST, F_SANDBOX };
	static struct event ev;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	event_init(&ev, kind->id, &arena);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		set_field(&ev, always[i], false);
	for (int f = 0; f < F_COUNT && variant != 1; f++)
		if (event_fields[f].families & kind->family && f != F_V && f != F_KIND)
			set_field(&ev, (enum field_id)f, variant == 2);
	buf_reset(out);
	if (event_to_json(&ev, out) < 0)
		abort();
	printf("%.*s\n", (int)out->n, out->p);
	arena_done(&arena);
}

static int samples(void)
{
	auto_buf struct buf out = { 0 };

	buf_init(&out, 0);
	for (size_t i = 0; i < event_kinds_n; i++)
		for (int variant = 0; variant < 3; variant++)
			print_sample(&event_kinds[i], variant, &out);
	return 0;
}

static int render_stdin(const char *name)
{
	struct err err = { 0 };
	const struct format *format = format_find(name, &err);
	struct renderer *r = NULL;
	auto_free char *line = NULL;
	struct str text;
	size_t room = 0;
	ssize_t n;

	if (!format || renderer_new(&r, format, &err) < 0) {
		fprintf(stderr, "render: %s\n", err_text(&err));
		return 2;
	}
	while ((n = getline(&line, &room, stdin)) > 0) {
		if (renderer_record(r, (struct str){ line, (size_t)n - (line[n - 1] == '\n') },
				    &text, &err) < 0) {
			fprintf(stderr, "render: %s: %.*s\n", err_text(&err), (int)n, line);
			renderer_free(r);
			return 1;
		}
		fwrite(text.p, 1, text.n, stdout);
		putchar('\n');
	}
	renderer_free(r);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "--samples"))
		return samples();
	if (!strcmp(argv[1], "--kinds")) {
		for (size_t i = 0; i < event_kinds_n; i++)
			puts(event_kinds[i].name);
		return 0;
	}
	if (!strcmp(argv[1], "--fields")) {
		for (int f = 0; f < F_COUNT; f++)
			puts(event_fields[f].name);
		return 0;
	}
	return render_stdin(argv[1]);
}

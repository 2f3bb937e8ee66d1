// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/replay/report_internal.h"
#include "userspace/replay/timeline.h"

#define LINE_MAX_BYTES ((size_t)8 << 20)
#define SAFE_NUMBER    ((uint64_t)1 << 53) /* JSON numbers are doubles in a browser */

/* ---- strings ---- */

static int strings_init(struct report_strings *s)
{
	buf_init(&s->fresh, LINE_MAX_BYTES);
	return intern_init(&s->known, 2 * REPORT_INTERN_MAX);
}

static void strings_done(struct report_strings *s)
{
	intern_done(&s->known);
	buf_done(&s->fresh);
}

/* `raw`: JSON that goes between brackets, else text. 1: it is a new one, its number is the one behind the last. */
static int strings_add(struct report_strings *s, struct str v, bool raw, uint32_t *ret)
{
	bool is_new;
	uint32_t n;
	int r;

	if (s->known.arena.total > REPORT_INTERN_MAX) {
		s->before += s->known.n;
		intern_done(&s->known);
		r = intern_init(&s->known, 2 * REPORT_INTERN_MAX);
		if (r < 0)
			return r;
	}
	n = s->known.n;
	r = intern_add(&s->known, v, ret);
	if (r < 0)
		return r;
	is_new = s->known.n > n;
	if (is_new) {
		if (s->fresh.n)
			buf_addc(&s->fresh, ',');
		if (raw) {
			buf_addc(&s->fresh, '[');
			buf_add(&s->fresh, v.p, v.n);
			buf_addc(&s->fresh, ']');
		} else {
			struct json j;

			json_init(&j, &s->fresh);
			json_str(&j, v);
		}
	}
	*ret += s->before;
	return s->fresh.failed ? -ENOMEM : is_new;
}

/* ---- life ---- */

void report_free(struct report *r)
{
	if (!r)
		return;
	strings_done(&r->strings);
	strings_done(&r->snapshots);
	report_stream_done(&r->stream);
	buf_done(&r->rows);
	buf_done(&r->own);
	buf_done(&r->terminal);
	buf_done(&r->text);
	buf_done(&r->pairs);
	buf_done(&r->session);
	buf_done(&r->line);
	free(r->bins);
	free(r);
}

DEFINE_AUTO(report, report_free)

int report_begin(struct report **ret, const struct report_options *opt,
		 const struct report_evidence *e)
{
	AUTO(report) struct report *r = calloc(1, sizeof(*r));
	int k;

	if (!r)
		return -ENOMEM;
	r->opt = *opt;
	if (!r->opt.events_max)
		r->opt.events_max = REPORT_EVENTS_MAX;
	r->text_field = event_field_find(STR("file.text"));
	r->text_before_field = event_field_find(STR("file.text_before"));
	buf_init(&r->rows, LINE_MAX_BYTES);
	buf_init(&r->own, LINE_MAX_BYTES);
	buf_init(&r->terminal, 3 * LINE_MAX_BYTES);
	buf_init(&r->text, REPORT_VALUE_MAX * 8);
	buf_init(&r->pairs, 1 << 20);
	buf_init(&r->session, 1 << 20);
	buf_init(&r->line, 4 * LINE_MAX_BYTES);
	k = strings_init(&r->strings);
	if (k == 0)
		k = strings_init(&r->snapshots);
	if (k == 0)
		k = report_density_init(r);
	if (k == 0)
		k = report_page_begin(r, e);
	if (k < 0)
		return k;
	*ret = take_ptr(r);
	return 0;
}

/* ---- events ---- */

uint32_t report_kind_index(enum wire_kind kind)
{
	for (size_t i = 0; i < event_kinds_n; i++)
		if (event_kinds[i].id == kind)
			return (uint32_t)i;
	return 0;
}

/* Said once for the whole session, or by the row itself. */
static bool is_constant(enum field_id f)
{
	static const enum field_id constant[] = { F_V,	    F_ID,      F_SEQ,		F_KIND,
						  F_MONO,   F_TIME,    F_SESSION,	F_HOST,
						  F_TENANT, F_SANDBOX, F_PROC_ANCESTORS };

	for (size_t i = 0; i < ARRAY_SIZE(constant); i++)
		if (constant[i] == f)
			return true;
	return false;
}

/* The page makes it from the path. */
static bool is_told(const struct event *ev, enum field_id f)
{
	struct str path, name;

	if (f != F_FILE_NAME || !event_has(ev, F_FILE_PATH))
		return false;
	path = event_str(ev, F_FILE_PATH);
	name = event_str(ev, F_FILE_NAME);
	return name.n && path.n > name.n && str_ends(path, name) &&
	       path.p[path.n - name.n - 1] == '/' && !memchr(name.p, '/', name.n);
}

/* A new string is -1: most paths appear once, and their numbers would not compress. A set of process fields is told
 * by its text, so there the number stands. */
static int put_text(struct report *r, struct str s)
{
	uint32_t n;
	int k = strings_add(&r->strings, s, false, &n);

	if (k < 0)
		return k;
	return k && !r->in_set ? buf_addz(&r->pairs, "-1") : buf_printf(&r->pairs, "%u", n);
}

static int put_list(struct report *r, const struct str *v, size_t n)
{
	size_t used = 0;
	int k = 0;

	buf_addc(&r->pairs, '[');
	for (size_t i = 0; k == 0 && i < n; i++) {
		bool full = used > REPORT_VALUE_MAX;

		if (i)
			buf_addc(&r->pairs, ',');
		buf_reset(&r->text);
		if (full)
			buf_printf(&r->text, "... (%zu more)", n - i);
		else
			text_for_terminal(v[i], REPORT_VALUE_MAX, &r->text);
		used += r->text.n + 1;
		k = put_text(r, (struct str){ r->text.p, r->text.n });
		if (full)
			break;
	}
	buf_addc(&r->pairs, ']');
	return k;
}

static int put_value(struct report *r, const struct event *ev, enum field_id f)
{
	const union field_value *v = &ev->v[f];
	int k;

	switch (event_fields[f].type) {
	case FT_U64:
		return buf_printf(&r->pairs, v->u < SAFE_NUMBER ? "%llu" : "\"%llu\"",
				  (unsigned long long)v->u);
	case FT_I64:
		return buf_printf(&r->pairs,
				  v->i < (int64_t)SAFE_NUMBER && v->i > -(int64_t)SAFE_NUMBER
					  ? "%lld"
					  : "\"%lld\"",
				  (long long)v->i);
	case FT_BOOL:
		return buf_addc(&r->pairs, v->u ? '1' : '0');
	case FT_STRLIST:
		return put_list(r, v->list.v, v->list.n);
	default:
		buf_reset(&r->text);
		k = timeline_value(ev, f, REPORT_VALUE_MAX, &r->text);
		return k < 0 ? k : put_text(r, (struct str){ r->text.p, r->text.n });
	}
}

/* The pairs of the process's fields, or of the others, into r->pairs. */
static int put_pairs(struct report *r, const struct event *ev, bool of_process)
{
	int k = 0;

	r->in_set = of_process;
	r->elements = 0;
	buf_reset(&r->pairs);
	for (int f = 0; k == 0 && f < F_COUNT; f++) {
		bool proc = !strncmp(event_fields[f].name, "proc.", 5);

		if (!event_has(ev, (enum field_id)f) || proc != of_process ||
		    is_constant((enum field_id)f) || is_told(ev, (enum field_id)f))
			continue;
		buf_printf(&r->pairs, "%s%d,", r->pairs.n ? "," : "", f);
		k = put_value(r, ev, (enum field_id)f);
		r->elements += 2;
	}
	return k < 0 ? k : r->pairs.failed ? -ENOMEM : 0;
}

static void keep_str(char *to, size_t n, struct str s)
{
	snprintf(to, n, "%.*s", (int)MIN(s.n, n - 1), s.p ? s.p : "");
}

static int note_start(struct report *r, const struct event *ev)
{
	static const struct {
		const char *key;
		enum field_id field;
	} members[] = {
		{ "command", F_RUN_COMMAND }, { "host", F_HOST },
		{ "sandbox", F_SANDBOX },     { "tenant", F_TENANT },
		{ "backend", F_RUN_BACKEND }, { "tier", F_RUN_TIER },
		{ "policy", F_RUN_POLICY },   { "image", F_RUN_IMAGE },
		{ "rules", F_RULE_SET },      { "secrets", F_RUN_SECRETS },
	};
	struct json j;

	r->has_start = true;
	r->first_mono = event_u64(ev, F_MONO);
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
	return r->session.failed ? -ENOMEM : 0;
}

static int note_session(struct report *r, const struct event *ev)
{
	if (ev->kind == WIRE_SESSION_STOP) {
		keep_str(r->reason, sizeof(r->reason), event_str(ev, F_RUN_REASON));
		keep_str(r->signal, sizeof(r->signal), event_str(ev, F_EXIT_SIGNAL));
		snprintf(r->code, sizeof(r->code), "%llu",
			 (unsigned long long)event_u64(ev, F_EXIT_CODE));
	}
	return r->has_start ? 0 : note_start(r, ev);
}

static void note_blob(struct report *r, const struct event *ev, int field)
{
	struct str name = field < 0 ? (struct str){ 0 } : event_str(ev, (enum field_id)field);

	if (!name.n || name.n >= sizeof(r->blobs[0]))
		return;
	for (size_t i = 0; i < r->blobs_n; i++)
		if (str_eqz(name, r->blobs[i]))
			return;
	if (r->blobs_n == REPORT_BLOBS_N)
		r->blobs_omitted++;
	else
		keep_str(r->blobs[r->blobs_n++], sizeof(r->blobs[0]), name);
}

const char *report_blob_wanted(const struct report *r, size_t i)
{
	return i < r->blobs_n ? r->blobs[i] : "";
}

/* What is kept when the page is full of the rest. */
static bool is_grave(const struct event *ev)
{
	switch (ev->kind) {
	case WIRE_EXEC:
	case WIRE_SESSION_START:
	case WIRE_SESSION_STOP:
	case WIRE_SESSION_PAUSE:
	case WIRE_SESSION_RESUME:
	case WIRE_ESCAPE:
	case WIRE_OOM:
	case WIRE_LIMIT:
	case WIRE_PACKAGE_INSTALL:
		return true;
	default:
		/* alerts, actions, gaps, the audit's own; not what binds the terminal's recording, many of them */
		return ev->kind >= WIRE_RULE_ALERT && ev->kind != WIRE_TERMINAL;
	}
}

/* An eighth of the page is for what matters most, wherever in the session it is. */
static bool has_room(const struct report *r, const struct event *ev, uint64_t us)
{
	uint32_t max = r->opt.events_max, common = max - max / 8;

	if (us < r->opt.from_ns / 1000 || (r->opt.to_ns && us > r->opt.to_ns / 1000))
		return false;
	if (r->stream.bytes > REPORT_DATA_MAX)
		return false;
	return r->events < (is_grave(ev) ? max : common);
}

/* Of a list in an object. */
static int end_line(struct report *r)
{
	buf_addz(&r->line, "]}\n");
	if (r->line.failed)
		return -ENOMEM;
	return report_stream_data(&r->stream, (struct str){ r->line.p, r->line.n });
}

/* One line: what is new in strings and process sets, and the events that use it. */
static int write_block(struct report *r)
{
	const struct {
		const char *key;
		struct buf *list;
	} parts[] = {
		{ "{\"s\":[", &r->strings.fresh },
		{ "],\"p\":[", &r->snapshots.fresh },
		{ "],\"e\":[", &r->rows },
		{ "],\"o\":[", &r->own },
	};

	if (!r->rows.n)
		return 0;
	buf_reset(&r->line);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		buf_addz(&r->line, parts[i].key);
		buf_add(&r->line, parts[i].list->n ? parts[i].list->p : "", parts[i].list->n);
		buf_reset(parts[i].list);
	}
	return end_line(r);
}

static int put_event(struct report *r, const struct event *ev, uint64_t us)
{
	uint64_t seq = event_u64(ev, F_SEQ);
	uint32_t snapshot;
	int k;

	k = put_pairs(r, ev, true);
	if (k >= 0)
		k = strings_add(&r->snapshots, (struct str){ r->pairs.p, r->pairs.n }, true,
				&snapshot);
	if (k >= 0)
		k = put_pairs(r, ev, false);
	if (k < 0)
		return k;
	buf_printf(&r->rows, "%s%lld,%lld,%u,%u,%zu", r->rows.n ? "," : "",
		   (long long)(seq - r->seq), (long long)(us - r->us), report_kind_index(ev->kind),
		   snapshot, r->elements);
	if (r->elements) {
		if (r->own.n)
			buf_addc(&r->own, ',');
		buf_add(&r->own, r->pairs.p, r->pairs.n);
	}
	r->seq = seq;
	r->us = us;
	r->events++;
	if (r->rows.failed || r->own.failed)
		return -ENOMEM;
	return r->rows.n + r->own.n + r->strings.fresh.n + r->snapshots.fresh.n < REPORT_BLOCK
		       ? 0
		       : write_block(r);
}

int report_add(struct report *r, const struct event *ev)
{
	uint64_t mono = event_u64(ev, F_MONO), us;
	int k;

	k = note_session(r, ev);
	if (k < 0)
		return k;
	/* a verdict may be a little earlier than the first record: time does not start before that */
	us = mono > r->first_mono ? (mono - r->first_mono) / 1000 : 0;
	if (!has_room(r, ev, us)) {
		r->omitted++;
		report_density_add(r, ev->kind, us);
		return 0;
	}
	note_blob(r, ev, r->text_field);
	note_blob(r, ev, r->text_before_field);
	return put_event(r, ev, us);
}

/* ---- the terminal, and texts of files ---- */

static int write_frames(struct report *r)
{
	if (!r->terminal.n)
		return 0;
	buf_reset(&r->line);
	buf_addz(&r->line, "{\"y\":[");
	buf_add(&r->line, r->terminal.p, r->terminal.n);
	buf_reset(&r->terminal);
	return end_line(r);
}

static int write_all(struct report *r)
{
	int k = write_block(r);

	return k < 0 ? k : write_frames(r);
}

int report_terminal(struct report *r, const struct report_frame *f)
{
	uint64_t us = f->mono > r->first_mono ? (f->mono - r->first_mono) / 1000 : 0;
	struct json j;
	int k;

	k = write_block(r);
	if (k < 0)
		return k;
	if (us < r->opt.from_ns / 1000 || (r->opt.to_ns && us > r->opt.to_ns / 1000) ||
	    r->terminal_bytes + f->data.n > REPORT_TERMINAL_MAX) {
		r->terminal_omitted += f->data.n;
		return 0;
	}
	r->terminal_bytes += f->data.n + 16;
	json_init(&j, &r->terminal);
	buf_printf(&r->terminal, "%s%lld,\"%c\",%u,", r->terminal.n ? "," : "",
		   (long long)(us - r->frame_us), (char)f->type, f->stream);
	if (f->type == REPORT_OUTPUT || f->type == REPORT_INPUT) {
		/* bytes, whatever they are: a character may begin in one record and end in the next */
		if (utf8_is_valid(f->data))
			json_str(&j, f->data);
		else {
			buf_addz(&r->terminal, "{\"b\":");
			json_base64(&j, f->data);
			buf_addc(&r->terminal, '}');
		}
	} else if (f->type == REPORT_RESIZE) {
		buf_printf(&r->terminal, "[%u,%u]", f->cols, f->rows);
	} else {
		buf_printf(&r->terminal, "%llu", (unsigned long long)MIN(f->bytes, SAFE_NUMBER));
	}
	r->frame_us = us;
	r->frames++;
	if (r->terminal.failed)
		return -ENOMEM;
	return r->terminal.n < REPORT_BLOCK ? 0 : write_frames(r);
}

int report_blob(struct report *r, struct str name, struct str text)
{
	struct json j;
	int k;

	k = write_all(r);
	if (k < 0)
		return k;
	if (r->blob_bytes + text.n > REPORT_BLOBS_MAX) {
		r->blobs_omitted++;
		return 0;
	}
	r->blob_bytes += text.n;
	buf_reset(&r->line);
	json_init(&j, &r->line);
	json_object_begin(&j);
	json_key(&j, "b");
	json_str(&j, name);
	json_key(&j, "t");
	json_str(&j, text);
	json_object_end(&j);
	buf_addc(&r->line, '\n');
	if (r->line.failed) {
		r->blobs_omitted++;
		return 0;
	}
	return report_stream_data(&r->stream, (struct str){ r->line.p, r->line.n });
}

int report_end(struct report *r, const char *damage)
{
	int k = write_all(r);

	return k < 0 ? k : report_page_end(r, damage);
}

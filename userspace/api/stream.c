// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/stream.h"

#include "exporters/scan.h"
#include "userspace/base/auto.h"

void stream_begin(struct call *c, const char *type, struct json *j)
{
	if (c->form == FORM_SSE)
		buf_printf(&c->out, "event: %s\ndata: ", type);
	json_init(j, &c->out);
	json_object_begin(j);
	json_key(j, "type");
	json_strz(j, type);
}

void stream_end(struct call *c, struct json *j)
{
	json_object_end(j);
	buf_addz(&c->out, c->form == FORM_SSE ? "\n\n" : "\n");
}

void stream_bytes(struct json *j, const char *key, struct text_carry *t, struct str bytes,
		  bool base64, bool last)
{
	auto_buf struct buf all = { 0 };
	struct str s;

	json_key(j, key);
	if (base64) {
		json_base64(j, bytes);
		return;
	}
	buf_add(&all, t->held, t->n);
	buf_add(&all, bytes.p, bytes.n);
	if (all.failed)
		j->out->failed = true;
	s = (struct str){ all.p ? all.p : "", all.n };
	t->n = last ? 0 : utf8_unfinished(s);
	s.n -= t->n;
	memcpy(t->held, s.p + s.n, t->n);
	json_str(j, s);
}

void stream_data(struct call *c, const char *type, struct text_carry *t, struct str bytes,
		 bool base64, bool last)
{
	struct json j;

	if (!bytes.n && (!last || !t->n))
		return;
	stream_begin(c, type, &j);
	stream_bytes(&j, "data", t, bytes, base64, last);
	stream_end(c, &j);
}

void stream_error(struct call *c, const char *text)
{
	struct str v;
	struct json j;

	stream_begin(c, "error", &j);
	json_key(&j, "message");
	if (text)
		json_strz(&j, text);
	else if (scan_find(str_from(c->up.packet), "error", &v))
		json_raw(&j, v);
	else
		json_strz(&j, "it broke off");
	stream_end(c, &j);
}

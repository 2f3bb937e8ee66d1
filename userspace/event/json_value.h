/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text of an event's values, written in place: for the native form and for the renderers. */
#ifndef WARDER_EVENT_JSON_VALUE_H
#define WARDER_EVENT_JSON_VALUE_H

#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/event/event.h"

/* The functions below write at d and return the new end; NULL once there is no room. SLACK bytes are
 * always free at a member's start: enough for its punctuation and any value but a string or list. */
#define SLACK 256

struct json_writer {
	struct buf *out;
	char *end;
	bool invalid; /* some string was not UTF-8: "raw" is needed */
	int error;
};

static __attribute__((noinline, unused)) char *grow(struct json_writer *w, char *d, size_t n)
{
	int r;

	w->out->n = (size_t)(d - w->out->p);
	r = buf_reserve(w->out, n);
	if (r < 0) {
		w->error = r;
		return NULL;
	}
	w->end = w->out->p + w->out->cap;
	return w->out->p + w->out->n;
}

static inline char *ensure(struct json_writer *w, char *d, size_t n)
{
	return (size_t)(w->end - d) >= n ? d : grow(w, d, n);
}

/* Room is made for the worst case of the whole string, and for what stands around it. */
static inline char *put_str(struct json_writer *w, char *d, struct str s)
{
	bool valid = true;
	size_t plain;

	if (s.n > BUF_MAX_DEFAULT)
		return NULL;
	d = ensure(w, d, s.n * JSON_ESCAPE_MAX + SLACK);
	if (!d)
		return NULL;
	*d++ = '"';
	plain = json_copy_plain(d, s.p, s.n);
	d += plain;
	if (plain < s.n) {
		d = json_escape(d, (struct str){ s.p + plain, s.n - plain }, &valid);
		w->invalid |= !valid;
	}
	*d++ = '"';
	return d;
}

/* JSON already. */
static inline char *put_json(struct json_writer *w, char *d, struct str s)
{
	d = ensure(w, d, s.n + SLACK);
	if (!d)
		return NULL;
	memcpy(d, s.p, s.n);
	return d + s.n;
}

static inline char *put_i64(char *d, int64_t v)
{
	if (v < 0)
		*d++ = '-';
	return json_digits(d, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static inline char *put_hex(char *d, uint64_t v)
{
	static const char digits[] = "0123456789abcdef";
	int shift = v ? (63 - __builtin_clzll(v)) / 4 * 4 : 0;

	memcpy(d, "\"0x", 3);
	d += 3;
	for (; shift >= 0; shift -= 4)
		*d++ = digits[v >> shift & 15];
	*d++ = '"';
	return d;
}

static inline char *put_time(char *d, uint64_t real_ns)
{
	*d++ = '"';
	rfc3339_ns(d, real_ns);
	d += RFC3339_NS_LEN;
	*d++ = '"';
	return d;
}

static inline char *put_ip(char *d, const struct ip_addr *ip)
{
	*d++ = '"';
	if (ip->family == 4) {
		for (int i = 0; i < 4; i++) {
			d = json_digits(d, ip->b[i]);
			*d++ = '.';
		}
		d--;
	} else {
		d += ip_addr_text(ip, d);
	}
	*d++ = '"';
	return d;
}

static inline char *put_list(struct json_writer *w, char *d, const struct str *v, size_t n)
{
	*d++ = '[';
	for (size_t i = 0; i < n && d; i++) {
		if (i)
			*d++ = ',';
		d = put_str(w, d, v[i]);
	}
	if (d)
		*d++ = ']';
	return d;
}

/* Text constants only: the size is known when this is compiled. */
#define PUT(d, text) (memcpy((d), (text), sizeof(text) - 1), (d) + sizeof(text) - 1)

static inline char *put_ancestors(struct json_writer *w, char *d, const struct event_ancestor *v,
				  size_t n)
{
	*d++ = '[';
	for (size_t i = 0; i < n; i++) {
		d = ensure(w, d, SLACK);
		if (!d)
			return NULL;
		if (i)
			*d++ = ',';
		d = json_digits(PUT(d, "{\"pid\":"), v[i].pid);
		d = json_digits(PUT(d, ",\"start\":"), v[i].start);
		if (v[i].comm.p)
			d = put_str(w, PUT(d, ",\"comm\":"), v[i].comm);
		if (d && v[i].exe.p)
			d = put_str(w, PUT(d, ",\"exe\":"), v[i].exe);
		if (!d)
			return NULL;
		*d++ = '}';
	}
	*d++ = ']';
	return d;
}

static inline char *put_answers(struct json_writer *w, char *d, const struct event_dns_answer *v,
				size_t n)
{
	*d++ = '[';
	for (size_t i = 0; i < n; i++) {
		if (i)
			*d++ = ',';
		d = put_str(w, PUT(d, "{\"name\":"), v[i].name);
		if (d)
			d = put_str(w, PUT(d, ",\"type\":"), v[i].type);
		if (d)
			d = json_digits(PUT(d, ",\"ttl\":"), v[i].ttl);
		if (d)
			d = put_str(w, PUT(d, ",\"data\":"), v[i].data);
		if (!d)
			return NULL;
		*d++ = '}';
	}
	*d++ = ']';
	return d;
}

static inline char *put_value(struct json_writer *w, char *d, unsigned type,
			      const union field_value *v)
{
	switch (type) {
	case FT_STR:
		return put_str(w, d, v->s);
	case FT_MEMBERS:
		return put_json(w, d, v->s);
	case FT_U64:
		return json_digits(d, v->u);
	case FT_I64:
		return put_i64(d, v->i);
	case FT_BOOL:
		return v->u ? PUT(d, "true") : PUT(d, "false");
	case FT_TIME:
		return put_time(d, v->u);
	case FT_HEX:
		return put_hex(d, v->u);
	case FT_IP:
		return put_ip(d, &v->ip);
	case FT_STRLIST:
		return put_list(w, d, v->list.v, v->list.n);
	case FT_ANCESTORS:
		return put_ancestors(w, d, v->ancestors.v, v->ancestors.n);
	case FT_ANSWERS:
		return put_answers(w, d, v->answers.v, v->answers.n);
	}
	return NULL;
}

#endif

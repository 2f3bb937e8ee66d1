// SPDX-License-Identifier: Apache-2.0
/* DNS messages (RFC 1035, 3597, 4343, 6891, 9460). Over TCP: dns_stream.c. A hostile resolver or client wrote every byte: all
 * reads are bounded, a compression pointer may only go backwards, and what does not parse is said in
 * dns.malformed instead of failing. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode.h"
#include "userspace/event/dns_names.h"

#define ANSWERS_MAX   64
#define QUESTIONS_MAX 16
#define RECORDS_MAX   256	  /* of authority and additional section, looked at for OPT */
#define TEXT_MAX      (16u << 10) /* all answers of a message: packets of 512 bytes can unfold to more */
#define RDATA_HEX_MAX 256	  /* bytes of an unknown type that are shown */

#define HEADER_LEN 12
#define NAME_WIRE  255
#define NAME_TEXT  (NAME_WIRE * 4 + 1) /* every byte as \DDD */

#define FLAG_QR 0x8000
#define FLAG_TC 0x0200

#define TYPE_A	   1
#define TYPE_CNAME 5
#define TYPE_OPT   41

struct message {
	const uint8_t *p;
	size_t n;
	size_t at;
	size_t text_left;
	const char *malformed; /* first thing wrong; static */
	bool ran_out; /* read past the end: no fault of the sender when the capture was cut */
	struct event *ev;
};

/* One name, or one record's data, as text. */
struct text {
	size_t n;
	bool full;
	char p[NAME_TEXT * 2 + 128];
};

static bool bad(struct message *m, const char *why)
{
	if (!m->malformed)
		m->malformed = why;
	return false;
}

static bool need(struct message *m, size_t n, const char *what)
{
	if (m->n - m->at >= n)
		return true;
	m->ran_out = true;
	return bad(m, what);
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void text_init(struct text *t)
{
	t->n = 0;
	t->full = false;
}

static void text_add(struct text *t, const char *p, size_t n)
{
	if (n > sizeof(t->p) - t->n) {
		n = sizeof(t->p) - t->n;
		t->full = true;
	}
	memcpy(t->p + t->n, p, n);
	t->n += n;
}

static void text_addz(struct text *t, const char *z)
{
	text_add(t, z, strlen(z));
}

static void __attribute__((format(printf, 2, 3))) text_printf(struct text *t, const char *fmt, ...)
{
	char tmp[96];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(tmp, sizeof(tmp), fmt, ap);
	va_end(ap);
	if (n > 0)
		text_add(t, tmp, MIN((size_t)n, sizeof(tmp) - 1));
}

/* Printable ASCII stays, `special` gets a backslash, the rest becomes \DDD (RFC 4343). */
static void text_add_byte(struct text *t, uint8_t c, const char *special)
{
	char e[4] = { '\\', (char)('0' + c / 100), (char)('0' + c / 10 % 10),
		      (char)('0' + c % 10) };

	if (c < 0x20 || c >= 0x7f || (c == ' ' && *special == '.')) {
		text_add(t, e, 4);
	} else {
		if (strchr(special, c))
			text_add(t, "\\", 1);
		text_add(t, (const char *)&c, 1);
	}
}

/* The name at *at, appended without its final dot ("." for the root); *at moves behind it. */
static bool get_name(struct message *m, size_t *at, struct text *t)
{
	size_t pos = *at, floor = *at, wire = 1, first = t->n;
	bool jumped = false;

	for (;;) {
		uint8_t k;

		if (pos >= m->n) {
			m->ran_out = true;
			return bad(m, "name runs past the end");
		}
		k = m->p[pos];
		if ((k & 0xc0) == 0xc0) {
			size_t target;

			if (pos + 1 >= m->n) {
				m->ran_out = true;
				return bad(m, "name runs past the end");
			}
			target = (size_t)(k & 0x3f) << 8 | m->p[pos + 1];
			if (!jumped)
				*at = pos + 2;
			jumped = true;
			/* Strictly backwards: loops are impossible, and so is a long walk. */
			if (target >= floor || target < HEADER_LEN)
				return bad(m, "compression pointer does not go back");
			floor = pos = target;
			continue;
		}
		if (k & 0xc0)
			return bad(m, "unknown label type");
		if (k == 0)
			break;
		wire += (size_t)k + 1;
		if (wire > NAME_WIRE)
			return bad(m, "name longer than 255 bytes");
		if (m->n - pos - 1 < k) {
			m->ran_out = true;
			return bad(m, "name runs past the end");
		}
		if (t->n > first)
			text_add(t, ".", 1);
		for (size_t i = 0; i < k; i++)
			text_add_byte(t, m->p[pos + 1 + i], ".\\");
		pos += (size_t)k + 1;
	}
	if (t->n == first)
		text_add(t, ".", 1);
	if (!jumped)
		*at = pos + 1;
	return true;
}

/* A name inside record data: must end exactly where it should, or before `end` when `exact` is off. */
static bool rdata_name(struct message *m, size_t *at, size_t end, bool exact, struct text *t)
{
	return get_name(m, at, t) && (exact ? *at == end : *at <= end);
}

static bool rdata_strings(struct message *m, size_t at, size_t end, struct text *t)
{
	const char *between = "";

	while (at < end) {
		size_t k = m->p[at++];

		if (k > end - at)
			return false;
		text_addz(t, between);
		text_add(t, "\"", 1);
		for (size_t i = 0; i < k; i++)
			text_add_byte(t, m->p[at + i], "\"\\");
		text_add(t, "\"", 1);
		at += k;
		between = " ";
	}
	return true;
}

static void text_add_ip(struct text *t, const uint8_t *b, uint8_t family)
{
	struct ip_addr ip = { .family = family };
	char z[64];

	memcpy(ip.b, b, family == 4 ? 4 : 16);
	text_add(t, z, ip_addr_text(&ip, z));
}

static void text_add_hex(struct text *t, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		text_printf(t, "%02x", p[i]);
}

/* One SvcParam's value (RFC 9460 section 7); false = show it as hex. */
static bool svc_value(const uint8_t *p, size_t n, uint16_t key, struct text *t)
{
	size_t size = key == 4 ? 4 : 16;

	switch (key) {
	case 1: /* alpn: length-prefixed ids */
		for (size_t i = 0; i < n;) {
			size_t k = p[i];

			if (k == 0 || k > n - i - 1)
				return false;
			if (i)
				text_add(t, ",", 1);
			for (size_t j = 0; j < k; j++)
				text_add_byte(t, p[i + 1 + j], ",\\");
			i += k + 1;
		}
		return n > 0;
	case 3:
		if (n != 2)
			return false;
		text_printf(t, "%u", get16(p));
		return true;
	case 4:
	case 6:
		if (n == 0 || n % size)
			return false;
		for (size_t i = 0; i < n; i += size) {
			if (i)
				text_add(t, ",", 1);
			text_add_ip(t, p + i, size == 4 ? 4 : 6);
		}
		return true;
	}
	return false;
}

static bool rdata_svcb(struct message *m, size_t at, size_t end, struct text *t)
{
	static const char *const keys[] = { "mandatory", "alpn", "no-default-alpn", "port",
					    "ipv4hint",	 "ech",	 "ipv6hint",	    "dohpath" };

	if (end - at < 3)
		return false;
	text_printf(t, "%u ", get16(m->p + at));
	at += 2;
	if (!rdata_name(m, &at, end, false, t))
		return false;
	while (end - at >= 4) {
		uint16_t key = get16(m->p + at), n = get16(m->p + at + 2);
		size_t before;

		at += 4;
		if (n > end - at)
			return false;
		if (key < ARRAY_SIZE(keys))
			text_printf(t, " %s", keys[key]);
		else
			text_printf(t, " key%u", key);
		if (n) {
			text_add(t, "=", 1);
			before = t->n;
			if (!svc_value(m->p + at, n, key, t)) {
				t->n = before;
				text_add_hex(t, m->p + at, MIN((size_t)n, (size_t)RDATA_HEX_MAX));
			}
		}
		at += n;
	}
	return at == end;
}

static bool rdata_soa(struct message *m, size_t at, size_t end, struct text *t)
{
	const uint8_t *p;

	if (!rdata_name(m, &at, end, false, t))
		return false;
	text_add(t, " ", 1);
	if (!rdata_name(m, &at, end, false, t) || end - at != 20)
		return false;
	p = m->p + at;
	text_printf(t, " %u %u %u %u %u", get32(p), get32(p + 4), get32(p + 8), get32(p + 12),
		    get32(p + 16));
	return true;
}

static bool rdata_caa(struct message *m, size_t at, size_t end, struct text *t)
{
	size_t k;

	if (end - at < 2)
		return false;
	k = m->p[at + 1];
	if (k > end - at - 2)
		return false;
	text_printf(t, "%u ", m->p[at]);
	at += 2;
	for (size_t i = 0; i < k; i++)
		text_add_byte(t, m->p[at + i], ".\\");
	text_addz(t, " \"");
	for (at += k; at < end; at++)
		text_add_byte(t, m->p[at], "\"\\");
	text_add(t, "\"", 1);
	return true;
}

/* Presentation form of known types. False: unknown, or its data are not what the type asks for. */
static bool rdata_known(struct message *m, uint16_t type, size_t at, size_t end, struct text *t)
{
	size_t n = end - at;

	switch (type) {
	case TYPE_A:
		if (n != 4)
			return false;
		text_add_ip(t, m->p + at, 4);
		return true;
	case 28: /* AAAA */
		if (n != 16)
			return false;
		text_add_ip(t, m->p + at, 6);
		return true;
	case 2: /* NS CNAME PTR DNAME */
	case TYPE_CNAME:
	case 12:
	case 39:
		return rdata_name(m, &at, end, true, t);
	case 15: /* MX */
		if (n < 3)
			return false;
		text_printf(t, "%u ", get16(m->p + at));
		at += 2;
		return rdata_name(m, &at, end, true, t);
	case 33: /* SRV */
		if (n < 7)
			return false;
		text_printf(t, "%u %u %u ", get16(m->p + at), get16(m->p + at + 2),
			    get16(m->p + at + 4));
		at += 6;
		return rdata_name(m, &at, end, true, t);
	case 6:
		return rdata_soa(m, at, end, t);
	case 16: /* TXT SPF */
	case 99:
		return rdata_strings(m, at, end, t);
	case 64: /* SVCB HTTPS */
	case 65:
		return rdata_svcb(m, at, end, t);
	case 257:
		return rdata_caa(m, at, end, t);
	}
	return false;
}

static void rdata_text(struct message *m, uint16_t type, size_t at, size_t n, struct text *t)
{
	const char *malformed = m->malformed;
	bool ran_out = m->ran_out;

	if (rdata_known(m, type, at, at + n, t))
		return;
	/* RFC 3597: what is not understood is shown as its bytes; the message goes on behind it. */
	m->malformed = malformed;
	m->ran_out = ran_out;
	text_init(t);
	text_printf(t, "\\# %zu", n);
	if (n)
		text_add(t, " ", 1);
	text_add_hex(t, m->p + at, MIN(n, (size_t)RDATA_HEX_MAX));
	if (n > RDATA_HEX_MAX)
		event_set_bool(m->ev, F_TRUNCATED, true);
}

struct record {
	uint16_t type, class;
	uint32_t ttl;
	size_t data, n;
};

/* Owner name appended to t; m->at moves behind the record. */
static bool get_record(struct message *m, struct text *t, struct record *r)
{
	const uint8_t *p;

	if (!get_name(m, &m->at, t) || !need(m, 10, "record header runs past the end"))
		return false;
	p = m->p + m->at;
	*r = (struct record){
		.type = get16(p), .class = get16(p + 2), .ttl = get32(p + 4), .n = get16(p + 8)
	};
	m->at += 10;
	if (!need(m, r->n, "record data run past the end"))
		return false;
	r->data = m->at;
	m->at += r->n;
	return true;
}

static struct str type_text(struct message *m, uint16_t type)
{
	const char *name = dns_type_name(type);

	return name ? str_from(name) : arena_printf(m->ev->arena, "TYPE%u", type);
}

static bool get_questions(struct message *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct text t;
		uint16_t type;

		text_init(&t);
		if (i == QUESTIONS_MAX)
			return bad(m, "too many questions");
		if (!get_name(m, &m->at, &t) || !need(m, 4, "question runs past the end"))
			return false;
		type = get16(m->p + m->at);
		m->at += 4;
		if (i > 0)
			continue;
		event_set_str(m->ev, F_DNS_NAME, arena_strndup(m->ev->arena, t.p, t.n));
		event_set_str(m->ev, F_DNS_TYPE, type_text(m, type));
	}
	if (count > 1)
		bad(m, "more than one question");
	return true;
}

static bool get_answers(struct message *m, unsigned count)
{
	struct event_dns_answer *v;
	size_t n = 0;
	bool ok = true;

	if (count == 0)
		return true;
	v = arena_alloc(m->ev->arena, MIN(count, (unsigned)ANSWERS_MAX) * sizeof(*v));
	if (!v)
		return false;
	for (unsigned i = 0; i < count && ok; i++) {
		struct text owner, data;
		struct record r;

		text_init(&owner);
		text_init(&data);
		ok = get_record(m, &owner, &r);
		if (!ok)
			break;
		if (n == ANSWERS_MAX || owner.n + r.n > m->text_left) {
			event_set_bool(m->ev, F_TRUNCATED, true);
			continue;
		}
		rdata_text(m, r.type, r.data, r.n, &data);
		if (owner.n + data.n > m->text_left) {
			m->text_left = 0;
			event_set_bool(m->ev, F_TRUNCATED, true);
			continue;
		}
		m->text_left -= owner.n + data.n;
		if (data.full)
			event_set_bool(m->ev, F_TRUNCATED, true);
		v[n] = (struct event_dns_answer){
			.name = arena_strndup(m->ev->arena, owner.p, owner.n),
			.type = type_text(m, r.type),
			.data = arena_strndup(m->ev->arena, data.p, data.n),
			.ttl = r.ttl,
		};
		if (v[n].name.p && v[n].type.p && v[n].data.p)
			n++;
	}
	m->ev->v[F_DNS_ANSWERS].answers.v = v;
	m->ev->v[F_DNS_ANSWERS].answers.n = n;
	event_mark(m->ev, F_DNS_ANSWERS);
	return ok;
}

/* Authority and additional records: only OPT matters, its TTL field holds the upper rcode bits. */
static bool get_rest(struct message *m, unsigned count, unsigned *rcode)
{
	for (unsigned i = 0; i < count; i++) {
		struct text owner;
		struct record r;

		text_init(&owner);
		if (i == RECORDS_MAX)
			return bad(m, "too many records");
		if (!get_record(m, &owner, &r))
			return false;
		if (r.type != TYPE_OPT)
			continue;
		*rcode |= r.ttl >> 24 << 4;
		event_set_u64(m->ev, F_DNS_EDNS, r.class);
	}
	return true;
}

static void parse(struct message *m)
{
	unsigned flags, rcode, questions, answers, rest;
	const uint8_t *p = m->p;
	const char *name;

	if (!need(m, HEADER_LEN, "shorter than a header"))
		return;
	flags = get16(p + 2);
	rcode = flags & 15;
	questions = get16(p + 4);
	answers = get16(p + 6);
	rest = (unsigned)get16(p + 8) + get16(p + 10);
	m->at = HEADER_LEN;
	event_set_u64(m->ev, F_DNS_ID, get16(p));
	if (flags & FLAG_TC)
		event_set_bool(m->ev, F_DNS_TC, true);
	if (get_questions(m, questions) && get_answers(m, answers))
		get_rest(m, rest, &rcode);
	if (!(flags & FLAG_QR))
		return;
	name = dns_rcode_name(rcode);
	event_set_str(m->ev, F_DNS_RCODE,
		      name ? str_from(name) : arena_printf(m->ev->arena, "RCODE%u", rcode));
}

void dns_decode(struct event *ev, const uint8_t *p, size_t n, size_t total)
{
	struct message m = { .p = p, .n = n, .ev = ev, .text_left = TEXT_MAX };
	bool cut = total > n;

	parse(&m);
	if (cut)
		event_set_bool(ev, F_TRUNCATED, true);
	if (m.malformed && !(cut && m.ran_out))
		event_set_strz(ev, F_DNS_MALFORMED, m.malformed);
}

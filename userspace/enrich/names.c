// SPDX-License-Identifier: Apache-2.0
/* Names for addresses, from DNS answers that belong to a query which was seen. An address gets the
 * name that was asked for, whatever aliases led to it: that is what policies are written with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/enrich/sandbox.h"

#define PENDING_NS     (60 * NSEC_PER_SEC) /* a resolver that takes longer is not waited for */
#define TTL_FLOOR_S    600u		   /* programs keep addresses longer than they should */
#define TTL_CAP_S      86400u
#define NAME_MAX_LEN   1024 /* 253 characters, each perhaps as \DDD */
#define CNAME_HOPS_MAX 16
#define PORT_DNS       53

struct dns_name {
	struct lru_node node;
	uint64_t until; /* mono */
	uint32_t n;
	uint32_t room;
	char *name; /* owned */
};

struct dns_pending {
	struct lru_node node;
	uint64_t since; /* mono */
	uint64_t cookie;
	uint32_t waiting; /* queries sent: a client that repeats one gets as many answers */
};

static void drop_name(void *ctx, struct lru_node *node)
{
	(void)ctx;
	free(((struct dns_name *)node)->name);
}

void names_init(struct sandbox *s, size_t max)
{
	lru_init(&s->dns_names, sizeof(struct dns_name), max, drop_name, NULL);
	lru_init(&s->dns_pending, sizeof(struct dns_pending), DNS_PENDING_MAX, NULL, NULL);
}

static struct lru_key address_key(const struct sandbox *s, const struct ip_addr *ip)
{
	uint64_t in[2] = { 0 };

	if (ip->family == 4) { /* as ::ffff:a.b.c.d */
		memcpy((char *)in + 10, "\xff\xff", 2);
		memcpy((char *)in + 12, ip->b, 4);
	} else {
		memcpy(in, ip->b, 16);
	}
	return key_exact(s, in[0], in[1]);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Same question, same flow: id, both ports, resolver, name in lower case, type. False: the event lacks
 * something that would tie the two together. */
static bool question_key(const struct sandbox *s, const struct event *ev, struct lru_key *ret)
{
	struct str name = event_str(ev, F_DNS_NAME), type = event_str(ev, F_DNS_TYPE);
	struct {
		struct ip_addr resolver;
		char type[15];
		uint64_t id, sport, dport;
		char name[NAME_MAX_LEN];
	} in;
	size_t fixed = offsetof(__typeof__(in), name);

	if (!event_has(ev, F_DNS_ID) || !event_has(ev, F_NET_DST_IP) || !name.p ||
	    name.n > sizeof(in.name) || type.n > sizeof(in.type))
		return false;
	memset(&in, 0, fixed);
	in.resolver = ev->v[F_NET_DST_IP].ip;
	if (type.n)
		memcpy(in.type, type.p, type.n);
	in.id = event_u64(ev, F_DNS_ID);
	in.sport = event_u64(ev, F_NET_SRC_PORT);
	in.dport = event_u64(ev, F_NET_DST_PORT);
	for (size_t i = 0; i < name.n; i++)
		in.name[i] = lower(name.p[i]);
	*ret = key_of_bytes(s, &in, fixed + name.n);
	return true;
}

static int learn_query(struct sandbox *s, const struct event *ev)
{
	struct dns_pending *q;
	struct lru_key key;

	if (!question_key(s, ev, &key))
		return 0;
	q = (struct dns_pending *)lru_find(&s->dns_pending, &key);
	if (q)
		lru_touch(&s->dns_pending, &q->node);
	else
		q = (struct dns_pending *)lru_add(&s->dns_pending, &key);
	if (!q)
		return -ENOMEM;
	q->waiting++;
	q->since = event_u64(ev, F_MONO);
	q->cookie = event_u64(ev, F_NET_COOKIE);
	return 0;
}

/* Does the answer belong to a query of this sandbox? Each query is answered once: a second answer
 * is what a forger sends. */
static bool take_query(struct sandbox *s, const struct event *ev)
{
	uint64_t cookie = event_u64(ev, F_NET_COOKIE), now = event_u64(ev, F_MONO);
	struct dns_pending *q;
	struct lru_key key;

	if (!question_key(s, ev, &key))
		return false;
	q = (struct dns_pending *)lru_find(&s->dns_pending, &key);
	if (!q || (q->cookie && cookie && q->cookie != cookie))
		return false;
	if (now > q->since && now - q->since > PENDING_NS)
		return false;
	if (--q->waiting == 0)
		lru_remove(&s->dns_pending, &q->node);
	return true;
}

static bool is_resolver(const struct sandbox *s, const struct ip_addr *ip)
{
	for (size_t i = 0; i < s->session.resolvers_n; i++)
		if (!memcmp(&s->resolvers[i], ip, sizeof(*ip)))
			return true;
	return s->session.resolvers_n == 0;
}

static int set_name(struct sandbox *s, const struct ip_addr *ip, struct str name, uint64_t until)
{
	struct lru_key key = address_key(s, ip);
	struct dns_name *d = (struct dns_name *)lru_find(&s->dns_names, &key);

	if (d)
		lru_touch(&s->dns_names, &d->node);
	else
		d = (struct dns_name *)lru_add(&s->dns_names, &key);
	if (!d)
		return -ENOMEM;
	if (d->room < name.n) {
		char *p = realloc(d->name, name.n);

		if (!p) {
			lru_remove(&s->dns_names, &d->node);
			return -ENOMEM;
		}
		d->name = p;
		d->room = (uint32_t)name.n;
	}
	for (size_t i = 0; i < name.n; i++) /* as asked for in any case: policies say it in one */
		d->name[i] = lower(name.p[i]);
	d->n = (uint32_t)name.n;
	d->until = until;
	return 0;
}

static bool same_name(struct str a, struct str b)
{
	return a.n == b.n && !strncasecmp(a.p, b.p, a.n);
}

static const struct event_dns_answer *alias_of(const struct event_dns_answer *v, size_t n,
					       struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eqz(v[i].type, "CNAME") && same_name(v[i].name, name))
			return &v[i];
	return NULL;
}

/* Is `owner` the name asked for, or an alias that this answer leads it to? */
static bool leads_to(const struct event_dns_answer *v, size_t n, struct str asked, struct str owner)
{
	struct str at = asked;

	for (size_t hops = 0; hops <= CNAME_HOPS_MAX; hops++) {
		const struct event_dns_answer *alias;

		if (same_name(at, owner))
			return true;
		alias = alias_of(v, n, at);
		if (!alias)
			return false;
		at = alias->data;
	}
	return false;
}

static int learn_answer(struct sandbox *s, struct event *ev)
{
	const struct event_dns_answer *v = ev->v[F_DNS_ANSWERS].answers.v;
	size_t n = event_has(ev, F_DNS_ANSWERS) ? ev->v[F_DNS_ANSWERS].answers.n : 0;
	struct str asked = event_str(ev, F_DNS_NAME);
	struct ip_addr ip;

	if (!take_query(s, ev)) {
		event_set_bool(ev, F_DNS_UNSOLICITED, true);
		return 0;
	}
	if (!is_resolver(s, &ev->v[F_NET_DST_IP].ip))
		return 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t ttl = MIN(MAX(v[i].ttl, TTL_FLOOR_S), TTL_CAP_S);

		if (!str_eqz(v[i].type, "A") && !str_eqz(v[i].type, "AAAA"))
			continue;
		if (!leads_to(v, n, asked, v[i].name) || ip_addr_parse(v[i].data, &ip) < 0)
			continue;
		if (set_name(s, &ip, asked, event_u64(ev, F_MONO) + ttl * NSEC_PER_SEC) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Addresses that are never looked up: saying "unresolved" there would be noise. */
static bool is_local(const struct ip_addr *ip)
{
	static const uint8_t zero[16];

	if (ip->family == 4)
		return ip->b[0] == 127 || ip->b[0] == 0 || ip->b[0] >= 224;
	return !memcmp(ip->b, zero, 15) /* :: and ::1 */ || ip->b[0] == 0xff;
}

/* Traffic to the resolver itself; on a list of known ones only those count. */
static bool is_lookup(const struct sandbox *s, const struct event *ev)
{
	return event_u64(ev, F_NET_DST_PORT) == PORT_DNS && is_resolver(s, &ev->v[F_NET_DST_IP].ip);
}

static int label_known(struct sandbox *s, struct event *ev)
{
	const struct ip_addr *ip = &ev->v[F_NET_DST_IP].ip;
	struct str proto = event_str(ev, F_NET_PROTO);
	struct lru_key key;
	struct dns_name *d;

	if (!event_has(ev, F_NET_DST_IP) || is_local(ip))
		return 0;
	key = address_key(s, ip);
	d = (struct dns_name *)lru_find(&s->dns_names, &key);
	if (d && event_u64(ev, F_MONO) <= d->until) {
		struct str name = arena_strndup(ev->arena, d->name, d->n);

		lru_touch(&s->dns_names, &d->node);
		event_set_str(ev, F_NET_DST_NAME, name);
		return name.p ? 0 : -ENOMEM;
	}
	if ((ev->kind == WIRE_NET_CONNECT || ev->kind == WIRE_NET_SEND) && !is_lookup(s, ev) &&
	    (str_eqz(proto, "tcp") || str_eqz(proto, "udp")))
		event_set_bool(ev, F_NET_UNRESOLVED, true);
	return 0;
}

static int label(struct sandbox *s, struct event *ev)
{
	int r = label_known(s, ev);

	opaque_apply(ev);
	return r;
}

int names_apply(struct sandbox *s, struct event *ev)
{
	/* The way out knows what it dialled for which name, and its answers were seen on the wire, too. */
	if (ev->hdr.vantage == WIRE_V_RUNTIME &&
	    (event_has(ev, F_NET_DST_NAME) || ev->kind == WIRE_DNS_ANSWER))
		return 0;
	switch (ev->kind) {
	case WIRE_DNS_QUERY:
		return learn_query(s, ev);
	case WIRE_DNS_ANSWER:
		return learn_answer(s, ev);
	case WIRE_NET_CONNECT:
	case WIRE_NET_SEND:
	case WIRE_NET_CLOSE:
		return label(s, ev);
	default:
		return 0;
	}
}

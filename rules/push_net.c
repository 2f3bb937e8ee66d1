// SPDX-License-Identifier: Apache-2.0
/* Push-down by remote address and port, as push_path.c does it for paths: a range is a network without the
 * smaller ones that are named, times the ports between two that are named. */
#include "rules/push_internal.h"

#include <stdlib.h>
#include <sys/socket.h>

#define PORTS 65536

struct net_range {
	struct push_net net;
	size_t parent; /* the nearest wider one; its own number: none */
};

struct net_ranges {
	struct net_range v[PUSH_RANGES_MAX];
	size_t n;
	uint32_t port[PUSH_PORTS_MAX]; /* where a range of ports begins; ascending */
	size_t ports_n;
	bool full;
};

static const uint16_t net_kinds[] = { WIRE_NET_CONNECT, WIRE_NET_SEND };
#define NET_KINDS ARRAY_SIZE(net_kinds)

/* A choice for each kind and range of ports. */
typedef struct push_choice net_row[PUSH_PORTS_MAX][NET_KINDS];

static void add_net(struct net_ranges *all, const struct net *n)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct push_net net = { .family = n->family == 4 ? PUSH_IPV4 : PUSH_IPV6, .bits = n->bits };

	/* Events and the kernel's tables have these as IPv4: no such address is ever seen. */
	if (n->family == 6 && n->bits >= 96 && !memcmp(n->b, mapped, sizeof(mapped)))
		return;
	memcpy(net.ip, n->b, n->family == 4 ? 4 : 16);
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].net.family == net.family && all->v[i].net.bits == net.bits &&
		    !memcmp(all->v[i].net.ip, net.ip, sizeof(net.ip)))
			return;
	if (all->n == PUSH_RANGES_MAX) {
		all->full = true;
		return;
	}
	all->v[all->n++].net = net;
}

static void add_port(struct net_ranges *all, uint64_t port)
{
	size_t at = all->ports_n;

	if (port >= PORTS)
		return;
	while (at > 0 && all->port[at - 1] >= port)
		at--;
	if (at < all->ports_n && all->port[at] == port)
		return;
	if (all->ports_n == PUSH_PORTS_MAX) {
		all->full = true;
		return;
	}
	memmove(all->port + at + 1, all->port + at, (all->ports_n - at) * sizeof(*all->port));
	all->port[at] = (uint32_t)port;
	all->ports_n++;
}

static void collect(struct net_ranges *all, const struct pred *p)
{
	const struct atom *a = p->atom;

	if (p->type == P_ATOM && push_is_ip(a))
		for (size_t i = 0; i < a->net_n; i++)
			add_net(all, &a->net[i]);
	if (p->type == P_ATOM && push_is_port(a))
		for (size_t i = 0; i < a->num_n; i++) {
			add_port(all, a->num[i]);
			add_port(all, a->num[i] + 1);
		}
	for (size_t i = 0; i < p->n; i++)
		collect(all, p->kid[i]);
}

static bool covers(const struct push_net *wide, const struct push_net *in)
{
	unsigned whole = wide->bits / 8, rest = wide->bits % 8;

	if (wide->family != in->family || wide->bits >= in->bits ||
	    memcmp(wide->ip, in->ip, whole) != 0)
		return false;
	return !rest || ((wide->ip[whole] ^ in->ip[whole]) & (0xff00u >> rest) & 0xff) == 0;
}

static void find_parents(struct net_ranges *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct net_range *r = &all->v[i];

		r->parent = i;
		for (size_t j = 0; j < all->n; j++)
			if (covers(&all->v[j].net, &r->net) &&
			    (r->parent == i || all->v[j].net.bits > all->v[r->parent].net.bits))
				r->parent = j;
	}
}

/* ---- asking ---- */

static int ask(struct push *p, struct push_rule *r, uint16_t kind, const struct push_net *net,
	       int port)
{
	struct push_known k = push_known(p, kind);
	int v;

	k.net = *net;
	k.net.port = port;
	v = push_ask(p, r, &k);
	if (v == TRI_UNKNOWN && k.unknown)
		push_short(r, kind, "the kernel does not know '%s'", k.unknown);
	return v;
}

static void judge_rule(struct push *p, struct push_rule *r, size_t kind,
		       const struct net_ranges *all, net_row *row)
{
	struct push_known others;
	bool any = false, whole = true;

	for (size_t i = 0; i < all->n; i++)
		for (size_t k = 0; k < all->ports_n; k++) {
			int v = ask(p, r, net_kinds[kind], &all->v[i].net, (int)all->port[k]);

			whole &= v != TRI_UNKNOWN;
			any |= v == TRI_TRUE;
			if (v == TRI_TRUE && !r->out_of_room)
				push_choose(&row[i][k][kind], r);
		}
	others = push_known(p, net_kinds[kind]);
	others.net.family = PUSH_OTHER;
	if (net_kinds[kind] == WIRE_NET_CONNECT && push_ask(p, r, &others) != TRI_FALSE) {
		whole = false;
		push_short(r, net_kinds[kind],
			   "only internet addresses: add 'and net.family in (inet, inet6)'");
	}
	if (r->out_of_room) {
		push_short(r, net_kinds[kind], "too many ranges of ports for the kernel's table");
		return;
	}
	if (whole)
		r->out->whole |= ENFORCE_KIND(net_kinds[kind]);
	else if (any)
		r->out->part |= ENFORCE_KIND(net_kinds[kind]);
}

/* ---- the table ---- */

static bool same(const struct push_choice *a, const struct push_choice *b)
{
	return a->id == b->id && a->verdict == b->verdict;
}

static struct enforce_entry entry_of(const struct push_net *net, const struct push_choice *c,
				     uint64_t kinds)
{
	bool v4 = net->family == PUSH_IPV4;
	struct enforce_entry e = {
		.id = c->id ? c->id : 1,
		.verdict = c->verdict,
		.by = ENFORCE_BY_ADDR,
		.kinds = kinds,
		.addr = { .family = v4 ? AF_INET : AF_INET6, .bits = net->bits },
	};

	memcpy(e.addr.ip, net->ip, v4 ? 4 : 16);
	return e;
}

/* The choice for most ranges of ports: it stands behind the others, for all ports. */
static const struct push_choice *usual(net_row row, size_t ports_n, size_t kind)
{
	const struct push_choice *best = &row[0][kind];
	size_t best_n = 0;

	for (size_t i = 0; i < ports_n; i++) {
		size_t n = 0;

		for (size_t j = 0; j < ports_n; j++)
			n += same(&row[i][kind], &row[j][kind]);
		if (n > best_n) {
			best = &row[i][kind];
			best_n = n;
		}
	}
	return best;
}

/* Entries of one network, at most ENFORCE_RULES; else -E2BIG. */
static int net_entries(const struct net_ranges *all, size_t at, net_row row,
		       struct enforce_entry *ret, size_t *ret_n)
{
	const struct push_choice *most[NET_KINDS];
	size_t n = 0;

	for (size_t k = 0; k < NET_KINDS; k++) {
		most[k] = usual(row, all->ports_n, k);
		for (size_t i = 0; i < all->ports_n; i++) {
			const struct push_choice *c = &row[i][k];
			size_t end = i;

			if (same(c, most[k]))
				continue;
			while (end + 1 < all->ports_n && same(&row[end + 1][k], c))
				end++;
			if (n == ENFORCE_RULES)
				return -E2BIG;
			ret[n] = entry_of(&all->v[at].net, c, ENFORCE_KIND(net_kinds[k]));
			ret[n].addr.port_from = (uint16_t)all->port[i];
			ret[n++].addr.port_to =
				(uint16_t)(end + 1 < all->ports_n ? all->port[end + 1] - 1
								  : PORTS - 1);
			i = end;
		}
	}
	for (size_t k = 0; k < NET_KINDS; k++) {
		if (k > 0 && same(most[k], most[0])) {
			ret[n - 1].kinds |= ENFORCE_KIND(net_kinds[k]);
			continue;
		}
		if (n == ENFORCE_RULES)
			return -E2BIG;
		ret[n] = entry_of(&all->v[at].net, most[k], ENFORCE_KIND(net_kinds[k]));
		ret[n++].addr.port_to = PORTS - 1;
	}
	*ret_n = n;
	return 0;
}

/* Somebody has to go: of those with a say here, the last. */
static void make_room(struct push *p, const struct net_ranges *all, net_row row)
{
	uint16_t last = 0;

	for (size_t i = 0; i < all->ports_n; i++)
		for (size_t k = 0; k < NET_KINDS; k++)
			last = MAX(last, row[i][k].id);
	for (size_t i = 0; i < p->rules_n; i++)
		p->rule[i].out_of_room |= p->rule[i].at + 1 == last;
}

static int put_table(struct push *p, const struct net_ranges *all, net_row *row)
{
	static const net_row nobody;
	struct enforce_entry e[ENFORCE_RULES];
	size_t n = 0, begin = p->plan->n;

	for (size_t i = 0; i < all->n; i++) {
		const net_row *above = all->v[i].parent == i ? &nobody : &row[all->v[i].parent];

		if (!memcmp(&row[i], above, all->ports_n * sizeof(row[i][0])))
			continue; /* says the same as what is wider */
		if (net_entries(all, i, row[i], e, &n) < 0) {
			make_room(p, all, row[i]);
			p->addrs_n -= p->plan->n - begin;
			p->plan->n = begin;
			return -EAGAIN;
		}
		for (size_t k = 0; k < n; k++) {
			int r = push_add(p, &e[k]);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int try_table(struct push *p, const struct net_ranges *all)
{
	auto_free net_row *row = calloc(all->n, sizeof(*row));

	if (!row)
		return -ENOMEM;
	for (size_t k = 0; k < NET_KINDS; k++)
		for (size_t i = 0; i < p->rules_n; i++)
			if (p->rule[i].kinds & ENFORCE_KIND(net_kinds[k]))
				judge_rule(p, &p->rule[i], k, all, row);
	return put_table(p, all, row);
}

int push_nets(struct push *p)
{
	static const struct net everything[] = { { .family = 4 }, { .family = 6 } };
	auto_free struct net_ranges *all = calloc(1, sizeof(*all));
	bool used = false;
	int r = -EAGAIN;

	if (!all)
		return -ENOMEM;
	add_net(all, &everything[0]);
	add_net(all, &everything[1]);
	add_port(all, 0);
	for (size_t i = 0; i < p->rules_n; i++) {
		if (!(p->rule[i].kinds & ENFORCE_NET_KINDS))
			continue;
		used = true;
		collect(all, p->rule[i].r->pred);
	}
	if (all->full || all->n * all->ports_n > PUSH_CELLS_MAX) {
		for (size_t i = 0; i < p->rules_n; i++)
			if (p->rule[i].kinds & ENFORCE_NET_KINDS)
				push_short(&p->rule[i], WIRE_NET_CONNECT,
					   "more than %d networks, or %d times ports, in all rules",
					   PUSH_RANGES_MAX, PUSH_CELLS_MAX);
		return 0;
	}
	find_parents(all);
	/* Each round that fails leaves one rule to user space. */
	while (used && r == -EAGAIN)
		r = try_table(p, all);
	return used ? r : 0;
}

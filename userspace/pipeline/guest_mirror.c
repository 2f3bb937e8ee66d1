// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/guest_mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/event/path.h"
#include "userspace/pipeline/call_table.h"
#include "userspace/pipeline/guest_priv.h"

#define NR_CONNECT	    42
#define NR_PRCTL	    157
#define NR_PTRACE	    101
#define NR_SECCOMP	    317
#define NR_CREAT	    85
#define PTRACE_SYSEMU_	    31
#define PTRACE_SYSEMU_STEP_ 32
#define PR_SET_SECCOMP_	    22
#define NR_SENDTO	    44
#define NR_SENDMMSG	    307
#define DNS_PORT	    53
#define MIRROR_CLOCK_NS	    20000 /* between two clocks */

/* One that the other side has not told yet. */
struct entry {
	struct entry *next;
	uint64_t at; /* an act: when it was told; a record of the host: its time */
	uint64_t due;
	struct wire_hdr h;
	uint64_t args[6];
	struct guest_fd sock; /* a send's, as it was then */
	size_t n;	      /* of `data` */
	char data[];	      /* an act: the directory; a record of the host: all of it */
};

struct list {
	struct entry *first, **last;
	size_t n;
};

/* Calls that look the same: both sides tell them in the same order, one of them ahead. */
struct balance {
	struct lru_node node;
	uint64_t told;	/* by the guest's kernel */
	uint64_t seen;	/* by the host's */
	uint64_t mark;	/* `seen` when it was asked whether all is told; 0 = nobody asks */
	char name[128]; /* of the last one that is asked about */
};

struct guest_mirror {
	struct guest *g;
	struct list acts, host, gofer;
	struct list
		owners; /* of the gofer's acts: it gives one to each new file, which nobody asked for */
	size_t bytes;
	struct lru balances;
	/* Keys of which more was seen than told. */
	size_t owed;
	/* CLOCK_BOOTTIME when the oldest of what waits now may have begun to; 0 = nothing waits. */
	uint64_t waits;
	/* CLOCK_BOOTTIME when it was asked whether all is told; 0 = nobody asks. */
	uint64_t asked;
	bool is_answered; /* but not to be relied on: see is_doubtful */
	/* Results may be made up by a filter of the guest's own, where they are not positive. */
	bool is_unsure;
	uint32_t contradictions;
	uint64_t packets, dropped; /* at an answer that is not to be relied on */
};

/* ---- lists ---- */

static void list_init(struct list *l)
{
	l->first = NULL;
	l->last = &l->first;
	l->n = 0;
}

static void list_add(struct guest_mirror *mi, struct list *l, struct entry *e)
{
	*l->last = e;
	l->last = &e->next;
	l->n++;
	mi->bytes += sizeof(*e) + e->n;
}

static struct entry *list_take(struct guest_mirror *mi, struct list *l, struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	if (l->last == &e->next)
		l->last = at;
	e->next = NULL;
	l->n--;
	mi->bytes -= sizeof(*e) + e->n;
	return e;
}

static void list_done(struct guest_mirror *mi, struct list *l)
{
	while (l->first)
		free(list_take(mi, l, &l->first));
}

static struct entry *entry_new(const struct wire_hdr *h, const void *args, struct str data)
{
	struct entry *e = calloc(1, sizeof(*e) + data.n);

	if (!e)
		return NULL;
	e->h = *h;
	memcpy(e->args, args, sizeof(e->args));
	e->n = data.n;
	if (data.n)
		memcpy(e->data, data.p, data.n);
	return e;
}

int guest_mirror_new(struct guest_mirror **ret, struct guest *g)
{
	struct guest_mirror *mi = calloc(1, sizeof(*mi));

	if (!mi)
		return -ENOMEM;
	mi->g = g;
	list_init(&mi->acts);
	list_init(&mi->host);
	list_init(&mi->gofer);
	list_init(&mi->owners);
	lru_init(&mi->balances, sizeof(struct balance), MIRROR_KEYS_MAX, NULL, NULL);
	*ret = mi;
	return 0;
}

void guest_mirror_free(struct guest_mirror *mi)
{
	if (!mi)
		return;
	list_done(mi, &mi->acts);
	list_done(mi, &mi->host);
	list_done(mi, &mi->gofer);
	list_done(mi, &mi->owners);
	lru_done(&mi->balances);
	free(mi);
}

/* ---- contradictions ---- */

static void contradict(struct guest_mirror *mi, const struct wire_hdr *h, const uint64_t args[6],
		       struct str name)
{
	struct guest *g = mi->g;
	struct wire_escape w = { .h = *h, .type = WIRE_ESCAPE_GUEST_DIVERGENCE };
	char text[256];

	mi->contradictions++;
	if (mi->contradictions > MIRROR_TOLD_MAX)
		return;
	w.h.kind = WIRE_ESCAPE;
	w.h.ring = WIRE_RING_NONE;
	w.h.seq = 0;
	memcpy(w.args, args, 6 * sizeof(args[0]));
	snprintf(text, sizeof(text), "the guest made a call that its kernel did not tell%s%.*s",
		 name.n ? ": " : "", (int)MIN(name.n, (size_t)160), name.n ? name.p : "");
	guest_begin(g, sizeof(w));
	w.detail = guest_tail(g, str_from(text), sizeof(text));
	guest_send(g, &w, sizeof(w));
}

/* The guest answers calls itself, or more happens than is kept: from here on nothing is said of what is missing. */
static void go_blind(struct guest_mirror *mi)
{
	if (mi->g->opt.has_mirror)
		mi->g->stats.is_blind = true;
}

/* A filter that the guest gave itself answers in the place of its kernel, which then has nothing to tell. */
static bool is_claimed(const struct guest_mirror *mi, int32_t ret)
{
	return !mi->g->stats.is_blind && (!mi->is_unsure || ret > 0);
}

static void look_for_filters(struct guest_mirror *mi, const struct seccheck_msg *m)
{
	if (m->has_exit && m->error)
		return;
	if (m->sysno == NR_SECCOMP || (m->sysno == NR_PRCTL && m->args[0] == PR_SET_SECCOMP_))
		mi->is_unsure = true;
	if (m->sysno == NR_PTRACE &&
	    (m->args[0] == PTRACE_SYSEMU_ || m->args[0] == PTRACE_SYSEMU_STEP_))
		go_blind(mi);
}

/* ---- calls of which it is enough that they were told ---- */

static struct balance *balance_of(struct guest_mirror *mi, uint64_t nr, int64_t ret, uint64_t what)
{
	uint64_t in[2] = { nr << 32 | (uint32_t)ret, what };
	struct lru_key key = { in[0], in[1], 0 };
	struct balance *b;

	crypto_shorthash((unsigned char *)&key.hash, (const unsigned char *)in, sizeof(in),
			 mi->g->key);
	b = (struct balance *)lru_find(&mi->balances, &key);
	if (b)
		return b;
	if (mi->balances.n == MIRROR_KEYS_MAX) { /* who is forgotten would be missed */
		go_blind(mi);
		return NULL;
	}
	return (struct balance *)lru_add(&mi->balances, &key);
}

static void settle(struct guest_mirror *mi, struct balance *b)
{
	if (b->told == b->seen)
		lru_remove(&mi->balances, &b->node);
}

static void tell(struct guest_mirror *mi, uint64_t nr, int64_t ret, uint64_t what)
{
	struct balance *b = balance_of(mi, nr, ret, what);

	if (!b)
		return;
	b->told++;
	mi->owed -= b->told == b->seen;
	settle(mi, b);
}

static void see(struct guest_mirror *mi, const struct wire_mirror *w, uint64_t what,
		struct str name)
{
	struct balance *b = balance_of(mi, w->h.nr, w->h.ret, what);

	if (!b)
		return;
	mi->owed += b->told == b->seen;
	b->seen++;
	if (!b->mark)
		snprintf(b->name, sizeof(b->name), "%.*s", (int)MIN(name.n, sizeof(b->name) - 1),
			 name.n ? name.p : "");
	settle(mi, b);
}

/* Of what an open was asked for, its flags: names are told from two readings of one memory. */
static uint64_t what_of(uint64_t nr, const __u64 args[6])
{
	if (nr == NR_CONNECT)
		return (uint32_t)args[0];
	return nr == 257 ? (uint32_t)args[2] : nr == 2 ? (uint32_t)args[1] : 0;
}

void guest_mirror_told(struct guest *g, const struct seccheck_msg *m)
{
	uint64_t what = m->sysno == NR_CONNECT ? (uint32_t)m->fd
			: m->sysno == NR_CREAT ? 0
					       : (uint32_t)m->flags;

	if (!g->opt.has_mirror || !m->has_exit)
		return;
	if (!m->error)
		tell(g->mirror, m->sysno, m->result, what);
	else if (m->sysno == NR_CONNECT && m->error == EINPROGRESS)
		tell(g->mirror, m->sysno, -EINPROGRESS, what);
}

/* ---- events ---- */

static struct str str_of(const struct entry *e, struct wire_str s)
{
	if (!e || !s.len || s.off > e->n || s.len > e->n - s.off)
		return (struct str){ 0 };
	return (struct str){ e->data + s.off, s.len };
}

static struct wire_mirror record_of(const struct entry *e)
{
	struct wire_mirror w = { 0 };

	if (e)
		memcpy(&w, e->data, MIN(e->n, sizeof(w)));
	return w;
}

/* The name that was given; of what the gofer did by a descriptor, the file's path. */
static struct str name_of(const struct entry *e)
{
	const struct wire_mirror w = record_of(e);
	struct str name = str_of(e, w.path);

	return name.n ? name : str_of(e, w.base);
}

/* The file's own path, out of what the gofer did. */
static struct str gofer_path(struct guest *g, const struct entry *e, struct wire_str base,
			     struct wire_str name)
{
	struct str b = str_of(e, base), n = str_of(e, name);

	if (!n.n)
		return b;
	return b.n ? path_join(&g->arena, b, n) : n;
}

static void put_name(struct guest *g, struct wire_file *w, struct str given, struct str cwd,
		     struct str own, bool at_cwd, struct wire_str *base, struct wire_str *path)
{
	if (own.n) {
		*path = guest_tail(g, own, WIRE_PATH_MAX);
		return;
	}
	if (!given.n) {
		w->h.flags |= WIRE_F_READ_FAULT;
		return;
	}
	w->h.flags |= WIRE_F_TOCTOU;
	if (given.p[0] != '/' && at_cwd)
		*base = guest_tail(g, cwd, WIRE_PATH_MAX - 1);
	*path = guest_tail(g, given, WIRE_PATH_MAX);
}

static void extras(struct wire_file *w, const struct call *c, const uint64_t args[6])
{
	int at = (c->path >= 0 ? c->path : c->dir) + 1;

	if (c->what == WIRE_FILE_MKDIR || (c->what == WIRE_FILE_ATTR && c->op == 1))
		w->mode = (uint32_t)args[at];
	if (c->what == WIRE_FILE_ATTR && c->op == 2) {
		w->uid = (uint32_t)args[at];
		w->gid = (uint32_t)args[at + 1];
	}
	if (c->what == WIRE_FILE_ATTR && c->op == 4)
		w->size = args[at];
}

static bool is_at_cwd(const struct entry *act, int8_t dir)
{
	return dir < 0 || (int32_t)act->args[dir] == AT_FDCWD;
}

static void send_file(struct guest *g, const struct entry *act, const struct entry *host,
		      const struct entry *gofer)
{
	const struct call *c = &call_table[act->h.nr];
	const struct wire_mirror h = record_of(host), o = record_of(gofer);
	const struct str cwd = { act->data, act->n };
	struct wire_file w = { .h = act->h, .op = c->op, .fd = -1 };

	w.h.kind = c->what;
	w.h.ret = MIN(w.h.ret, 0);
	w.h.vantage = host || gofer ? WIRE_V_KERNEL : WIRE_V_GUEST;
	extras(&w, c, act->args);
	guest_begin(g, sizeof(w));
	put_name(g, &w, str_of(host, h.path), cwd, gofer_path(g, gofer, o.base, o.path),
		 is_at_cwd(act, c->dir), &w.base, &w.path);
	if (c->path2 >= 0 && c->what == WIRE_FILE_LINK && c->op == 2)
		w.path2 = guest_tail(g, gofer ? str_of(gofer, o.path2) : str_of(host, h.path2),
				     WIRE_PATH_MAX);
	else if (c->path2 >= 0 && c->what != WIRE_FILE_ATTR)
		put_name(g, &w, str_of(host, h.path2), cwd, gofer_path(g, gofer, o.base2, o.path2),
			 is_at_cwd(act, c->dir2), &w.base2, &w.path2);
	guest_send(g, &w, sizeof(w));
}

struct target {
	uint16_t family, port;
	uint8_t addr[16];
};

static struct target target_of(const struct entry *act, struct str addr)
{
	struct target t = { act->sock.family, act->sock.peer_port, { 0 } };
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	uint16_t family = 0;

	memcpy(t.addr, act->sock.peer, sizeof(t.addr));
	if (addr.n < sizeof(family))
		return t;
	memcpy(&family, addr.p, sizeof(family));
	if (family == AF_INET && addr.n >= sizeof(in)) {
		memcpy(&in, addr.p, sizeof(in));
		t = (struct target){ AF_INET, ntohs(in.sin_port), { 0 } };
		memcpy(t.addr, &in.sin_addr, 4);
	} else if (family == AF_INET6 && addr.n >= sizeof(in6)) {
		memcpy(&in6, addr.p, sizeof(in6));
		t = (struct target){ AF_INET6, ntohs(in6.sin6_port), { 0 } };
		memcpy(t.addr, &in6.sin6_addr, 16);
	} else {
		t.family = 0;
	}
	return t;
}

static void send_dns(struct guest *g, const struct entry *act, const struct target *t,
		     struct str data, uint32_t total)
{
	struct wire_dns w = { .h = act->h,
			      .family = t->family,
			      .sport = act->sock.port,
			      .dport = t->port,
			      .proto = IPPROTO_UDP,
			      .total = total };

	w.h.kind = WIRE_DNS_QUERY;
	w.h.vantage = WIRE_V_KERNEL;
	w.h.flags |= WIRE_F_TOCTOU;
	memcpy(w.daddr, t->addr, sizeof(w.daddr));
	memcpy(w.saddr, act->sock.addr, sizeof(w.saddr));
	guest_begin(g, sizeof(w));
	w.data = guest_tail(g, data, WIRE_DNS_MAX);
	guest_send(g, &w, sizeof(w));
}

/* As from the kernel's own side: where it goes, and what was asked of a name server. */
static void send_sent(struct guest *g, const struct entry *act, const struct entry *host)
{
	const struct wire_mirror h = record_of(host);
	struct str addr = str_of(host, h.addr), data = str_of(host, h.data);
	const struct target t = target_of(act, addr);
	struct wire_net w = { .h = act->h,
			      .family = t.family,
			      .type = act->sock.type,
			      .proto = act->sock.proto,
			      .sport = act->sock.port,
			      .dport = t.port,
			      .count = 1 };

	if ((t.family != AF_INET && t.family != AF_INET6) || g->opt.has_net)
		return;
	if (data.n && t.port == DNS_PORT && act->sock.type != SOCK_STREAM)
		send_dns(g, act, &t, data, h.total);
	if (!addr.n || act->sock.type == SOCK_STREAM)
		return;
	w.h.kind = WIRE_NET_SEND;
	w.h.vantage = WIRE_V_KERNEL;
	w.h.flags |= WIRE_F_TOCTOU;
	w.h.ret = MIN(w.h.ret, 0);
	if (!w.proto)
		w.proto = w.type == SOCK_DGRAM ? IPPROTO_UDP : 0;
	memcpy(w.daddr, t.addr, sizeof(w.daddr));
	memcpy(w.saddr, act->sock.addr, sizeof(w.saddr));
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
}

/* ---- joining ---- */

static struct list *gofer_list(struct guest_mirror *mi, uint16_t nr)
{
	return call_table[nr].what == WIRE_FILE_ATTR && call_table[nr].op == 2 ? &mi->owners
									       : &mi->gofer;
}

/* The last one of its kind before the act's end, by the name if it is known. */
static struct entry *find_gofer(struct guest_mirror *mi, const struct entry *act,
				const struct entry *host)
{
	uint64_t end = host ? host->at : act->h.ts + MIRROR_CLOCK_NS;
	const struct call *c = &call_table[act->h.nr];
	struct str name = host ? path_name(name_of(host)) : (struct str){ 0 };
	struct list *l = gofer_list(mi, act->h.nr);
	struct entry **at, **found = NULL;

	if (act->h.ret < 0)
		return NULL;
	for (at = &l->first; *at && (*at)->at <= end; at = &(*at)->next) {
		const struct call *oc = &call_table[(*at)->h.nr];

		if (oc->what == c->what && oc->op == c->op &&
		    (!name.n || str_eq(name, path_name(name_of(*at)))))
			found = at;
	}
	return found ? list_take(mi, l, found) : NULL;
}

static void join(struct guest_mirror *mi, struct entry *act, struct entry *host)
{
	struct entry *gofer;

	if (call_table[act->h.nr].slot == SLOT_FILE) {
		gofer = find_gofer(mi, act, host);
		send_file(mi->g, act, host, gofer);
		free(gofer);
	} else if (host) {
		send_sent(mi->g, act, host);
	}
}

static bool is_same(const struct entry *a, const struct entry *b)
{
	return a->h.nr == b->h.nr && a->h.ret == b->h.ret &&
	       memcmp(a->args, b->args, sizeof(a->args)) == 0;
}

/* Whether a send is told depends on both sides. */
static bool is_evidence(const struct entry *e)
{
	return call_table[e->h.nr].slot == SLOT_FILE;
}

static uint64_t sum_of(const struct guest_mirror *mi, const struct entry *e)
{
	uint64_t h;

	crypto_shorthash((unsigned char *)&h, (const unsigned char *)e->args, sizeof(e->args),
			 mi->g->key);
	return h;
}

static void give_up(struct guest_mirror *mi, struct entry **at)
{
	struct entry *act = list_take(mi, &mi->acts, at);

	join(mi, act, NULL);
	if (mi->g->opt.has_mirror && is_evidence(act)) /* the host may see it yet */
		tell(mi, act->h.nr, act->h.ret, sum_of(mi, act));
	free(act);
}

static struct entry **find(struct list *l, const struct entry *like)
{
	for (struct entry **at = &l->first; *at; at = &(*at)->next)
		if (is_same(*at, like))
			return at;
	return NULL;
}

/* Streams send often; of those the host tells nothing. */
static bool is_awaited(const struct entry *act)
{
	if (call_table[act->h.nr].slot == SLOT_FILE)
		return true;
	if (act->sock.type == SOCK_STREAM)
		return false;
	return act->h.nr != NR_SENDTO || act->args[4] || act->sock.peer_port == DNS_PORT;
}

static struct entry *act_new(struct guest *g, const struct seccheck_msg *m)
{
	struct wire_hdr h = guest_header(g, m, WIRE_MIRROR);
	struct entry *act;
	struct guest_fd *f;

	guest_call_header(&h, m);
	act = entry_new(&h, m->args, m->c.cwd);
	f = act && call_table[m->sysno].slot == SLOT_SEND
		    ? guest_fd(g, m->c.tgid, (int32_t)m->args[0], false)
		    : NULL;
	if (f)
		act->sock = *f;
	return act;
}

void guest_mirror_act(struct guest *g, const struct seccheck_msg *m)
{
	struct guest_mirror *mi = g->mirror;
	struct entry *act, **at;
	bool joined = false;

	look_for_filters(mi, m);
	if (m->sysno >= CALLS_MAX ||
	    (call_table[m->sysno].slot != SLOT_FILE &&
	     (call_table[m->sysno].slot != SLOT_SEND || !g->opt.has_mirror)))
		return;
	act = act_new(g, m);
	if (!act)
		return;
	while (g->opt.has_mirror && (at = find(&mi->host, act))) {
		struct entry *host = list_take(mi, &mi->host, at);

		join(mi, act, host);
		free(host);
		joined = true;
		if (m->sysno != NR_SENDMMSG)
			break;
	}
	if (joined || !is_awaited(act)) {
		free(act);
		return;
	}
	act->at = g->now;
	act->due = g->now + MIRROR_WAIT_NS;
	g->due = MIN(g->due, g->opt.has_mirror ? act->due : g->now + MIRROR_ASK_NS);
	list_add(mi, &mi->acts, act);
	while (mi->acts.n > MIRROR_ENTRIES_MAX)
		give_up(mi, &mi->acts.first);
}

/* By its number it was told that a call like this one ended, long ago. */
static bool was_told(struct guest_mirror *mi, const struct entry *host)
{
	struct balance *b = balance_of(mi, host->h.nr, host->h.ret, sum_of(mi, host));
	bool told = b && b->told > b->seen;

	if (told)
		b->seen++;
	if (b)
		settle(mi, b);
	return told;
}

static void wait_for_guest(struct guest_mirror *mi, struct entry *host)
{
	mi->g->due = MIN(mi->g->due, host->at + MIRROR_ASK_NS);
	list_add(mi, &mi->host, host);
	if (mi->host.n > MIRROR_ENTRIES_MAX) {
		go_blind(mi);
		free(list_take(mi, &mi->host, &mi->host.first));
	}
}

static void take_host(struct guest_mirror *mi, struct entry *host)
{
	const struct wire_mirror w = record_of(host);
	const struct call *c = &call_table[w.h.nr];
	struct entry **at;

	if (c->slot == SLOT_OPEN || c->slot == SLOT_NET) {
		see(mi, &w, what_of(w.h.nr, w.args), str_of(host, w.path));
		free(host);
		return;
	}
	at = find(&mi->acts, host);
	if (at) {
		join(mi, *at, host);
		/* else: another message of the same call follows */
		if (w.h.nr != NR_SENDMMSG || w.index || w.h.ret < 2)
			free(list_take(mi, &mi->acts, at));
		free(host);
	} else if (is_evidence(host) && was_told(mi, host)) {
		free(host);
	} else {
		wait_for_guest(mi, host);
	}
}

/* What the gofer did only gives an act its name, so it goes first. */
static bool has_room(struct guest_mirror *mi)
{
	while (mi->bytes > MIRROR_BYTES_MAX && mi->owners.first)
		free(list_take(mi, &mi->owners, &mi->owners.first));
	while (mi->bytes > MIRROR_BYTES_MAX && mi->gofer.first)
		free(list_take(mi, &mi->gofer, &mi->gofer.first));
	return mi->bytes <= MIRROR_BYTES_MAX;
}

void guest_mirror(struct guest *g, const void *rec, size_t len, uint64_t boot_ns)
{
	struct guest_mirror *mi = g->mirror;
	struct wire_mirror w;
	struct list *l;
	struct entry *e;
	uint32_t part;

	if (len < sizeof(w))
		return;
	memcpy(&w, rec, sizeof(w));
	if (w.h.nr >= CALLS_MAX)
		return;
	g->now = boot_ns;
	arena_reset(&g->arena);
	e = has_room(mi) ? entry_new(&w.h, w.args, (struct str){ rec, len }) : NULL;
	if (!e) {
		go_blind(mi);
		return;
	}
	e->at = w.h.ts;
	part = (w.h.flags & WIRE_F_PART) >> WIRE_PART_SHIFT;
	if (part == GVISOR_STUB) {
		take_host(mi, e);
	} else if (part == GVISOR_GOFER) {
		l = gofer_list(mi, w.h.nr);
		list_add(mi, l, e);
		while (l->n > MIRROR_ENTRIES_MAX)
			free(list_take(mi, l, &l->first));
	} else {
		free(e);
	}
}

/* ---- time ---- */

void guest_host_read(struct guest *g, uint64_t boot_ns)
{
	struct guest_mirror *mi = g->mirror;

	/* What the gofer did for an act was before it was told. A stub may tell of it later, but not when all has ended. */
	if (g->opt.has_mirror && boot_ns != UINT64_MAX)
		return;
	while (mi->acts.first && mi->acts.first->at < boot_ns) {
		arena_reset(&g->arena);
		give_up(mi, &mi->acts.first);
	}
}

static void expire(struct guest_mirror *mi, struct list *l)
{
	while (l->first && l->first->at + MIRROR_GOFER_NS < mi->g->now)
		free(list_take(mi, l, &l->first));
}

uint64_t guest_mirror_tick(struct guest *g)
{
	struct guest_mirror *mi = g->mirror;
	uint64_t due = UINT64_MAX;

	while (mi->acts.first && mi->acts.first->due <= g->now)
		give_up(mi, &mi->acts.first);
	expire(mi, &mi->gofer);
	expire(mi, &mi->owners);
	if (mi->acts.first)
		due = g->opt.has_mirror ? mi->acts.first->due : g->now + MIRROR_ASK_NS;
	if (mi->host.n || mi->owed)
		due = MIN(due, g->now + MIRROR_ASK_NS);
	return due;
}

static void ask(struct guest_mirror *mi, uint64_t boot_ns)
{
	mi->asked = boot_ns;
	for (struct lru_node *node = mi->balances.oldest; node; node = node->newer) {
		struct balance *b = (struct balance *)node;

		b->mark = b->seen;
	}
}

bool guest_wants_quiet(struct guest *g, uint64_t boot_ns)
{
	struct guest_mirror *mi = g->mirror;

	if (mi->asked && !mi->is_answered)
		return false;
	if (!mi->host.n && !mi->owed) {
		mi->waits = 0;
		return false;
	}
	if (!mi->waits)
		mi->waits = boot_ns;
	if (boot_ns < mi->waits + MIRROR_ASK_NS)
		return false;
	mi->waits = boot_ns;
	if (!mi->asked)
		ask(mi, boot_ns);
	mi->is_answered = false;
	return true;
}

/* Of one that the guest's kernel did not tell, the event is the host's alone: who it was is not known. */
static void send_alone(struct guest_mirror *mi, struct entry *host)
{
	struct entry *act = entry_new(&host->h, host->args, (struct str){ 0 });

	if (!act)
		return;
	act->h.ring = WIRE_RING_NONE;
	act->h.seq = 0;
	join(mi, act, host);
	free(act);
}

static void settle_hosts(struct guest_mirror *mi, bool lossy)
{
	while (mi->host.first && mi->host.first->at < mi->asked) {
		struct entry *host = list_take(mi, &mi->host, &mi->host.first);

		send_alone(mi, host);
		if (!is_evidence(host))
			;
		else if (lossy)
			mi->g->stats.unseen++;
		else if (is_claimed(mi, host->h.ret))
			contradict(mi, &host->h, host->args, name_of(host));
		free(host);
	}
}

static void settle_balances(struct guest_mirror *mi, bool lossy)
{
	const struct seccheck_msg nobody = { 0 };
	const uint64_t args[6] = { 0 };
	struct lru_node *node, *newer;

	for (node = mi->balances.oldest; node; node = newer) {
		struct balance *b = (struct balance *)node;
		struct wire_hdr h = guest_header(mi->g, &nobody, WIRE_ESCAPE);

		newer = node->newer;
		if (b->mark > b->told) {
			h.nr = (uint16_t)(node->key.a >> 32);
			h.ret = (int32_t)node->key.a;
			h.vantage = WIRE_V_KERNEL;
			if (lossy)
				mi->g->stats.unseen += b->mark - b->told;
			else if (is_claimed(mi, h.ret))
				contradict(mi, &h, args, str_from(b->name));
			b->told = b->mark;
			mi->owed -= b->told == b->seen;
		}
		b->mark = 0;
		settle(mi, b);
	}
}

/* Messages are lost only while the socket is full, and the next one that gets through says so. */
static bool is_doubtful(struct guest_mirror *mi, bool was_full, bool is_last, bool *ret_lossy)
{
	const struct guest_stats *st = &mi->g->stats;

	*ret_lossy = false;
	if (!mi->packets && !was_full)
		return false;
	if (!mi->packets) {
		mi->packets = st->packets + 1;
		mi->dropped = st->dropped;
	}
	if (st->packets < mi->packets && !is_last)
		return true;
	*ret_lossy = st->packets < mi->packets || st->dropped != mi->dropped;
	mi->packets = 0;
	return false;
}

void guest_quiet(struct guest *g, bool was_full, bool is_last)
{
	struct guest_mirror *mi = g->mirror;
	bool lossy;

	if (is_last)
		ask(mi, UINT64_MAX);
	if (!mi->asked)
		return;
	mi->is_answered = true;
	if (is_doubtful(mi, was_full, is_last, &lossy))
		return;
	arena_reset(&g->arena);
	settle_hosts(mi, lossy);
	settle_balances(mi, lossy);
	mi->asked = 0;
}

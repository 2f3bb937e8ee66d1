// SPDX-License-Identifier: Apache-2.0
/* Sessions by sandbox id, and the order of the enrichers. */
#include "userspace/enrich/enrich.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/enrich/sandbox.h"

struct sandbox_entry {
	struct lru_node node;
	struct sandbox *sandbox;
};

struct enrich {
	struct enrich_limits limits;
	struct hash_key hash_key;
	struct lru sandboxes;
	struct who who[WHO_KEPT];
	struct sandbox *last; /* events come in runs of one sandbox */
};

struct lru_key key_exact(const struct sandbox *s, uint64_t a, uint64_t b)
{
	uint64_t in[2] = { a, b };
	struct lru_key key = { a, b, 0 };

	crypto_shorthash((unsigned char *)&key.hash, (const unsigned char *)in, sizeof(in),
			 s->hash_key->k);
	return key;
}

struct lru_key key_of_ids(const struct sandbox *s, uint64_t a, uint64_t b)
{
	unsigned __int128 product;
	uint64_t secret[2];

	memcpy(secret, s->hash_key->k, sizeof(secret));
	product = (unsigned __int128)(a ^ secret[0]) * (b ^ secret[1]);
	return (struct lru_key){ a, b, (uint64_t)product ^ (uint64_t)(product >> 64) };
}

struct lru_key key_of_bytes(const struct sandbox *s, const void *p, size_t n)
{
	uint64_t out[2];

	crypto_shorthash_siphashx24((unsigned char *)out, p, n, s->hash_key->k);
	return (struct lru_key){ out[0], out[1], out[0] };
}

static void sandbox_free(struct sandbox *s)
{
	if (!s)
		return;
	lru_done(&s->processes);
	lru_done(&s->dns_names);
	lru_done(&s->dns_pending);
	lru_done(&s->files);
	lru_done(&s->opens);
	lru_done(&s->opens_told);
	places_done(s);
	event_part_done(&s->part);
	free(s->text);
	free(s);
}

static void drop_sandbox(void *ctx, struct lru_node *node)
{
	struct enrich *e = ctx;
	struct sandbox_entry *entry = (struct sandbox_entry *)node;

	if (e->last == entry->sandbox)
		e->last = NULL;
	sandbox_free(entry->sandbox);
}

int enrich_new(struct enrich **ret, const struct enrich_limits *limits)
{
	struct enrich *e;

	if (sodium_init() < 0)
		return -EIO;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	if (limits)
		e->limits = *limits;
	if (!e->limits.processes)
		e->limits.processes = PROCESSES_DEFAULT;
	if (!e->limits.dns_entries)
		e->limits.dns_entries = DNS_ENTRIES_DEFAULT;
	if (!e->limits.files)
		e->limits.files = FILES_DEFAULT;
	if (!e->limits.opens)
		e->limits.opens = OPENS_DEFAULT;
	opaque_init();
	crypto_shorthash_keygen(e->hash_key.k);
	lru_init(&e->sandboxes, sizeof(struct sandbox_entry), SANDBOXES_MAX, drop_sandbox, e);
	*ret = e;
	return 0;
}

void enrich_free(struct enrich *e)
{
	if (!e)
		return;
	lru_done(&e->sandboxes);
	for (size_t i = 0; i < WHO_KEPT; i++)
		event_part_done(&e->who[i].part);
	free(e);
}

/* Sandbox ids are ours, so they need no secret hash. */
static struct lru_key id_key(uint32_t id)
{
	return (struct lru_key){ id, 0, id };
}

static struct sandbox *sandbox_find(struct enrich *e, uint32_t id)
{
	struct lru_key key = id_key(id);
	struct lru_node *node;

	if (e->last && e->last->session.sandbox_id == id)
		return e->last;
	node = lru_find(&e->sandboxes, &key);
	if (!node)
		return NULL;
	e->last = ((struct sandbox_entry *)node)->sandbox;
	return e->last;
}

static size_t text_size(const char *z)
{
	return z ? strlen(z) + 1 : 0;
}

static const char *text_put(struct sandbox *s, const char *z)
{
	char *at = s->text + s->text_n;

	if (!z)
		return NULL;
	memcpy(at, z, strlen(z) + 1);
	s->text_n += strlen(z) + 1;
	return at;
}

static int sandbox_new(struct sandbox **ret, struct enrich *e, const struct enrich_session *from)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->text =
		malloc(text_size(from->session) + text_size(from->name) + text_size(from->tenant) +
		       text_size(from->host) + text_size(from->env_values) + 1);
	if (!s->text) {
		free(s);
		return -ENOMEM;
	}
	s->hash_key = &e->hash_key;
	s->who = e->who;
	s->session = *from;
	s->session.session = text_put(s, from->session);
	s->session.name = text_put(s, from->name);
	s->session.tenant = text_put(s, from->tenant);
	s->session.host = text_put(s, from->host);
	s->text_told = s->text_n;
	s->session.env_values = text_put(s, from->env_values);
	s->session.resolvers_n = MIN(from->resolvers_n, (size_t)ENRICH_RESOLVERS_MAX);
	if (s->session.resolvers_n)
		memcpy(s->resolvers, from->resolvers,
		       s->session.resolvers_n * sizeof(s->resolvers[0]));
	s->session.resolvers = s->resolvers;
	if (places_init(s, from) < 0) {
		free(s->text);
		free(s);
		return -ENOMEM;
	}
	processes_init(s, e->limits.processes);
	names_init(s, e->limits.dns_entries);
	files_init(s, e->limits.files);
	opens_init(s, e->limits.opens);
	*ret = s;
	return 0;
}

int enrich_session_add(struct enrich *e, const struct enrich_session *from)
{
	struct lru_key key = id_key(from->sandbox_id);
	struct sandbox_entry *entry;
	struct sandbox *s;
	int r;

	if (lru_find(&e->sandboxes, &key))
		return -EEXIST;
	if (e->sandboxes.n == e->sandboxes.max)
		return -ENOSPC; /* a live sandbox must not be forgotten for a new one */
	r = sandbox_new(&s, e, from);
	if (r < 0)
		return r;
	entry = (struct sandbox_entry *)lru_add(&e->sandboxes, &key);
	if (!entry) {
		sandbox_free(s);
		return -ENOMEM;
	}
	entry->sandbox = s;
	return 0;
}

void enrich_session_remove(struct enrich *e, uint32_t sandbox_id)
{
	struct lru_key key = id_key(sandbox_id);
	struct lru_node *node = lru_find(&e->sandboxes, &key);

	if (node)
		lru_remove(&e->sandboxes, node);
}

static const enum field_id session_fields[] = { F_SESSION, F_SANDBOX, F_TENANT, F_HOST };

#define SESSION_SPAN (1ull << F_SESSION | 1ull << F_SANDBOX | 1ull << F_TENANT | 1ull << F_HOST)

/* The session's strings in one copy; what the record said itself stays. */
static int session_copy(const struct sandbox *s, struct event *ev)
{
	const struct enrich_session *from = &s->session;
	const char *z[] = { from->session, from->name, from->tenant, from->host };
	char *copy = arena_alloc(ev->arena, s->text_told);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, s->text, s->text_told);
	for (size_t i = 0; i < ARRAY_SIZE(z); i++)
		if (z[i] && !event_has(ev, session_fields[i]))
			event_set_strz(ev, session_fields[i], copy + (z[i] - s->text));
	return 0;
}

static int session_apply(struct sandbox *s, struct event *ev)
{
	bool is_plain = !(ev->present[0] & SESSION_SPAN);
	int r = 0;

	if (!event_has(ev, F_TIME) && event_has(ev, F_MONO))
		event_set_u64(ev, F_TIME, ev->v[F_MONO].u + (uint64_t)s->session.real_offset_ns);
	if (is_plain && s->part.serial) {
		event_part_give(&s->part, ev);
		ev->part[EVENT_PART_SESSION] = &s->part;
		return 0;
	}
	r = session_copy(s, ev);
	if (r == 0 && is_plain)
		(void)event_part_make(&s->part, ev, SESSION_SPAN); /* only saves time */
	return r;
}

static void oom_apply(const struct sandbox *s, struct event *ev)
{
	event_set_strz(ev, F_LIMIT_TYPE, "memory");
	if (s->session.memory_limit)
		event_set_u64(ev, F_LIMIT_VALUE, s->session.memory_limit);
}

/* The kernel's side sees that a fork was refused, not by which number. */
static void limit_apply(const struct sandbox *s, struct event *ev)
{
	if (!event_has(ev, F_LIMIT_VALUE) && s->session.pids_limit &&
	    str_eqz(event_str(ev, F_LIMIT_TYPE), "pids"))
		event_set_u64(ev, F_LIMIT_VALUE, s->session.pids_limit);
}

int enrich_apply(struct enrich *e, struct event *ev)
{
	struct sandbox *s = sandbox_find(e, ev->hdr.sandbox);
	int r;

	if (!s)
		return -ENOENT;
	environ_apply(s, ev); /* first: what goes wrong later must not let a value through */
	r = session_apply(s, ev);
	if (r < 0)
		return r;
	if (ev->kind == WIRE_OOM)
		oom_apply(s, ev);
	if (ev->kind == WIRE_LIMIT)
		limit_apply(s, ev);
	r = opens_apply(s, ev);
	if (r < 0)
		return r;
	r = places_apply(s, ev);
	if (r < 0)
		return r;
	r = files_apply(s, ev);
	if (r < 0)
		return r;
	r = processes_apply(s, ev);
	if (r < 0)
		return r;
	return names_apply(s, ev);
}

void enrich_stats(const struct enrich *e, struct enrich_stats *ret)
{
	struct enrich_stats st = { .sandboxes = e->sandboxes.n };

	for (struct lru_node *node = e->sandboxes.newest; node; node = node->older) {
		const struct sandbox *s = ((struct sandbox_entry *)node)->sandbox;

		st.processes += s->processes.n;
		st.dns_entries += s->dns_names.n;
		st.files += s->files.n;
		st.evicted += s->processes.evicted + s->dns_names.evicted + s->files.evicted;
	}
	*ret = st;
}

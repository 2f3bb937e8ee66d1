/* SPDX-License-Identifier: Apache-2.0 */
/* Entries -> rows of the maps. A trie finds one key only, the longest; so each key carries what its
 * shorter ones say too, most specific first. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "userspace/base/auto.h"
#include "userspace/capture/enforce.h"

#define KEY_BITS 32 /* of `keys`, in front of path and address */

static int cmp_specific(const struct enforce_rule *a, const struct enforce_rule *b)
{
	int wa = a->port_to - a->port_from, wb = b->port_to - b->port_from;

	return wa != wb ? wa - wb : b->verdict - a->verdict;
}

static size_t rules_n(const struct enforce_rules *r)
{
	size_t n = 0;

	while (n < ENFORCE_RULES && r->r[n].id)
		n++;
	return n;
}

/* Put a rule of the key's own in its place. */
static int rules_add(struct enforce_rules *to, const struct enforce_rule *r)
{
	size_t n = rules_n(to), at = n;

	if (n == ENFORCE_RULES)
		return -E2BIG;
	while (at > 0 && cmp_specific(r, &to->r[at - 1]) < 0) {
		to->r[at] = to->r[at - 1];
		at--;
	}
	to->r[at] = *r;
	return 0;
}

/* Kinds of `r` that no rule before it takes for all of its ports. */
static uint64_t kinds_left(const struct enforce_rules *to, const struct enforce_rule *r)
{
	uint64_t kinds = r->kinds;

	for (size_t i = 0; i < rules_n(to); i++)
		if (to->r[i].port_from <= r->port_from && to->r[i].port_to >= r->port_to)
			kinds &= ~to->r[i].kinds;
	return kinds;
}

/* What a wider key says, behind what is there. */
static int rules_inherit(struct enforce_rules *to, const struct enforce_rules *from)
{
	for (size_t i = 0; i < rules_n(from); i++) {
		struct enforce_rule r = from->r[i];
		size_t n = rules_n(to);

		r.kinds = kinds_left(to, &r);
		if (!r.kinds)
			continue;
		if (n == ENFORCE_RULES)
			return -E2BIG;
		to->r[n] = r;
	}
	return 0;
}

/* ---- paths ---- */

static struct enforce_path_row *path_row(struct enforce_tables *t, uint32_t keys, const char *bytes,
					 size_t n)
{
	struct enforce_path_key key = { .keys = keys, .prefixlen = KEY_BITS + 8 * (uint32_t)n };
	struct enforce_path_row *all;

	memcpy(key.path, bytes, n);
	for (size_t i = 0; i < t->paths_n; i++)
		if (!memcmp(&t->paths[i].key, &key, sizeof(key)))
			return &t->paths[i];
	all = reallocarray(t->paths, t->paths_n + 1, sizeof(*all));
	if (!all)
		return NULL;
	t->paths = all;
	t->paths[t->paths_n] = (struct enforce_path_row){ .key = key };
	return &t->paths[t->paths_n++];
}

static int add_path_row(struct enforce_tables *t, const char *bytes, size_t n,
			const struct enforce_rule *r, struct err *err)
{
	struct enforce_path_row *row = path_row(t, t->set.keys, bytes, n);

	if (!row)
		return err_set(err, ENOMEM, "enforcement: out of memory");
	if (rules_add(&row->rules, r) < 0)
		return err_set(err, E2BIG, "enforcement: more than %d entries for path '%.*s'",
			       ENFORCE_RULES, (int)n, bytes);
	return 0;
}

static int add_path(struct enforce_tables *t, const struct enforce_entry *e,
		    const struct enforce_rule *r, struct err *err)
{
	size_t n = e->path.path ? strlen(e->path.path) : 0;
	char bytes[ENFORCE_PATH_MAX + 2] = { 0 };
	int rc;

	if (!e->path.path || n > ENFORCE_PATH_MAX - 1 || (e->path.path[0] != '/' && !e->path.bytes))
		return err_set(err, EINVAL,
			       "enforcement entry %u: a path is absolute and has up to %d bytes",
			       e->id, ENFORCE_PATH_MAX - 1);
	memcpy(bytes, e->path.path, n);
	while (!e->path.bytes && n > 1 && bytes[n - 1] == '/')
		bytes[--n] = 0;
	if (e->path.bytes)
		return add_path_row(t, bytes, n + e->path.exact, r, err);
	if (n == 1 && !e->path.exact) /* the root: all there is */
		return add_path_row(t, bytes, 1, r, err);
	rc = add_path_row(t, bytes, n + 1, r, err); /* itself: up to its NUL */
	if (rc < 0 || e->path.exact)
		return rc;
	bytes[n] = '/';
	return add_path_row(t, bytes, n + 1, r, err);
}

static int cmp_path_rows(const void *a, const void *b)
{
	const struct enforce_path_row *x = a, *y = b;

	return x->key.prefixlen < y->key.prefixlen ? -1 : x->key.prefixlen > y->key.prefixlen;
}

/* Short ones first: by its turn each key already holds what is to be passed on. */
static int inherit_paths(struct enforce_tables *t, struct err *err)
{
	if (t->paths_n)
		qsort(t->paths, t->paths_n, sizeof(*t->paths), cmp_path_rows);
	for (size_t i = 0; i < t->paths_n; i++) {
		for (size_t j = i; j-- > 0;) {
			size_t n = (t->paths[j].key.prefixlen - KEY_BITS) / 8;

			if (t->paths[j].key.prefixlen == t->paths[i].key.prefixlen ||
			    memcmp(t->paths[j].key.path, t->paths[i].key.path, n) != 0)
				continue;
			if (rules_inherit(&t->paths[i].rules, &t->paths[j].rules) < 0)
				return err_set(err, E2BIG,
					       "enforcement: more than %d entries meet at '%s'",
					       ENFORCE_RULES, t->paths[i].key.path);
			break; /* the nearest holds what is above it */
		}
	}
	return 0;
}

/* ---- addresses ---- */

static void mask_bits(uint8_t *ip, size_t bytes, unsigned int bits)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned int keep = bits > 8 * i ? MIN(bits - 8 * (unsigned int)i, 8u) : 0;

		ip[i] &= (uint8_t)(0xff00u >> keep);
	}
}

static int add_addr(struct enforce_tables *t, const struct enforce_entry *e,
		    const struct enforce_rule *r, struct err *err)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct enforce_addr6_key key = { .keys = t->set.keys };
	bool v6 = e->addr.family == AF_INET6;
	unsigned int bits = e->addr.bits;
	struct enforce_addr_row *all;
	size_t i;

	if ((!v6 && e->addr.family != AF_INET) || bits > (v6 ? 128 : 32) ||
	    r->port_from > r->port_to)
		return err_set(err, EINVAL, "enforcement entry %u: no such network or ports",
			       e->id);
	memcpy(key.addr, e->addr.ip, v6 ? 16 : 4);
	if (v6 && bits >= 96 && !memcmp(key.addr, mapped, sizeof(mapped))) {
		memmove(key.addr, key.addr + 12, 4);
		memset(key.addr + 4, 0, 12);
		v6 = false;
		bits -= 96;
	}
	mask_bits(key.addr, v6 ? 16 : 4, bits);
	key.prefixlen = KEY_BITS + bits;
	for (i = 0; i < t->addrs_n; i++)
		if (t->addrs[i].v6 == v6 && !memcmp(&t->addrs[i].key, &key, sizeof(key)))
			break;
	if (i == t->addrs_n) {
		all = reallocarray(t->addrs, t->addrs_n + 1, sizeof(*all));
		if (!all)
			return err_set(err, ENOMEM, "enforcement: out of memory");
		t->addrs = all;
		t->addrs[t->addrs_n++] = (struct enforce_addr_row){ .v6 = v6, .key = key };
	}
	if (rules_add(&t->addrs[i].rules, r) < 0)
		return err_set(err, E2BIG, "enforcement: more than %d entries for one network",
			       ENFORCE_RULES);
	return 0;
}

static int cmp_addr_rows(const void *a, const void *b)
{
	const struct enforce_addr_row *x = a, *y = b;

	return x->key.prefixlen < y->key.prefixlen ? -1 : x->key.prefixlen > y->key.prefixlen;
}

static bool addr_covers(const struct enforce_addr_row *wide, const struct enforce_addr_row *in)
{
	uint8_t ip[16];

	if (wide->v6 != in->v6 || wide->key.prefixlen >= in->key.prefixlen)
		return false;
	memcpy(ip, in->key.addr, sizeof(ip));
	mask_bits(ip, wide->v6 ? 16 : 4, wide->key.prefixlen - KEY_BITS);
	return !memcmp(ip, wide->key.addr, sizeof(ip));
}

static int inherit_addrs(struct enforce_tables *t, struct err *err)
{
	if (t->addrs_n)
		qsort(t->addrs, t->addrs_n, sizeof(*t->addrs), cmp_addr_rows);
	for (size_t i = 0; i < t->addrs_n; i++) {
		for (size_t j = i; j-- > 0;) {
			if (!addr_covers(&t->addrs[j], &t->addrs[i]))
				continue;
			if (rules_inherit(&t->addrs[i].rules, &t->addrs[j].rules) < 0)
				return err_set(
					err, E2BIG,
					"enforcement: more than %d entries meet at one network",
					ENFORCE_RULES);
			break;
		}
	}
	return 0;
}

/* ---- the rest ---- */

static int add_exe(struct enforce_tables *t, const struct enforce_entry *e,
		   const struct enforce_rule *r, struct err *err)
{
	struct enforce_exe_key key = { .ino = e->exe.ino, .dev = e->exe.dev, .keys = t->set.keys };
	struct enforce_exe_row *all;
	size_t i;

	for (i = 0; i < t->exes_n; i++)
		if (!memcmp(&t->exes[i].key, &key, sizeof(key)))
			break;
	if (i == t->exes_n) {
		all = reallocarray(t->exes, t->exes_n + 1, sizeof(*all));
		if (!all)
			return err_set(err, ENOMEM, "enforcement: out of memory");
		t->exes = all;
		t->exes[t->exes_n++] = (struct enforce_exe_row){ .key = key };
	}
	if (rules_add(&t->exes[i].rules, r) < 0)
		return err_set(err, E2BIG, "enforcement: more than %d entries for one executable",
			       ENFORCE_RULES);
	return 0;
}

/* Of several the strictest counts; the first of those names itself. */
static void put_verdict(uint16_t *verdict, uint16_t *id, const struct enforce_entry *e)
{
	if (e->verdict <= *verdict)
		return;
	*verdict = e->verdict;
	*id = e->id;
}

static uint64_t kinds_of(const struct enforce_entry *e)
{
	if (e->kinds)
		return e->kinds;
	switch ((enum enforce_by)e->by) {
	case ENFORCE_BY_ESCAPE:
		return ENFORCE_KIND(WIRE_ESCAPE);
	case ENFORCE_BY_PATH:
		return ENFORCE_FILE_KINDS;
	case ENFORCE_BY_EXE:
		return ENFORCE_KIND(WIRE_EXEC);
	case ENFORCE_BY_ADDR:
		return ENFORCE_NET_KINDS;
	case ENFORCE_BY_KIND:
	case ENFORCE_BY_NAME:
		break;
	}
	return 0;
}

static int add_entry(struct enforce_tables *t, const struct enforce_entry *e, struct err *err)
{
	struct enforce_rule r = {
		.kinds = kinds_of(e), .id = e->id, .verdict = e->verdict, .port_to = UINT16_MAX
	};
	int rc = 0;

	if (e->by == ENFORCE_BY_NAME)
		return 0;
	if (!e->id || e->verdict > ENFORCE_KILL || e->by > ENFORCE_BY_NAME)
		return err_set(err, EINVAL, "enforcement entry %u: no id, verdict or sort", e->id);
	switch ((enum enforce_by)e->by) {
	case ENFORCE_BY_KIND:
		if (!r.kinds)
			return err_set(err, EINVAL, "enforcement entry %u: no kind", e->id);
		for (unsigned int k = 0; k < ENFORCE_KINDS; k++)
			if (r.kinds >> k & 1)
				put_verdict(&t->set.kind_verdict[k], &t->set.kind_id[k], e);
		break;
	case ENFORCE_BY_ESCAPE:
		if (!e->escape || e->escape >= ENFORCE_KINDS)
			return err_set(err, EINVAL, "enforcement entry %u: no escape type", e->id);
		put_verdict(&t->set.escape_verdict[e->escape], &t->set.escape_id[e->escape], e);
		break;
	case ENFORCE_BY_PATH:
		rc = add_path(t, e, &r, err);
		if (e->path.cut) {
			put_verdict(&t->set.cut_verdict, &t->set.cut_id, e);
			t->set.cut_kinds |= r.kinds;
		}
		break;
	case ENFORCE_BY_EXE:
		rc = add_exe(t, e, &r, err);
		break;
	case ENFORCE_BY_ADDR:
		if (e->addr.port_from || e->addr.port_to) {
			r.port_from = e->addr.port_from;
			r.port_to = e->addr.port_to;
		}
		rc = add_addr(t, e, &r, err);
		break;
	case ENFORCE_BY_NAME:
		break;
	}
	if (rc == 0 && e->verdict != ENFORCE_PASS)
		t->set.kinds[e->by] |= r.kinds;
	return rc;
}

int enforce_compile(struct enforce_tables *ret, uint32_t keys, unsigned int class,
		    const struct enforce_entry *v, size_t n, struct err *err)
{
	struct enforce_tables t = { .set.keys = keys };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		if (v[i].class == class)
			r = add_entry(&t, &v[i], err);
	if (r == 0)
		r = inherit_paths(&t, err);
	if (r == 0)
		r = inherit_addrs(&t, err);
	if (r < 0) {
		enforce_tables_done(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void enforce_tables_done(struct enforce_tables *t)
{
	free(t->paths);
	free(t->exes);
	free(t->addrs);
	memset(t, 0, sizeof(*t));
}

/* ---- which programs are of which class ---- */

static int add_name(struct enforce_name_row *row, const struct enforce_entry *e,
		    const struct enforce_class *class, struct err *err)
{
	size_t n = e->path.path ? strlen(e->path.path) : 0;

	if (!e->path.path || n > ENFORCE_PATH_MAX - 1)
		return err_set(err, EINVAL, "enforcement: the path of a program has up to %d bytes",
			       ENFORCE_PATH_MAX - 1);
	*row = (struct enforce_name_row){ .class = *class };
	row->key.keys = class->names;
	row->key.prefixlen = KEY_BITS + 8 * (uint32_t)(n + e->path.exact);
	memcpy(row->key.path, e->path.path, n);
	return 0;
}

int enforce_compile_names(struct enforce_name_row **ret, size_t *ret_n, uint32_t names,
			  const uint32_t *row, size_t classes, const struct enforce_entry *v,
			  size_t n, struct err *err)
{
	auto_free struct enforce_name_row *rows = calloc(n + 1, sizeof(*rows));
	bool all = false;
	size_t k = 0;

	if (!rows)
		return err_set(err, ENOMEM, "enforcement: out of memory");
	for (size_t i = 0; i < n; i++) {
		struct enforce_class class = { .names = names };
		int r;

		if (v[i].by != ENFORCE_BY_NAME)
			continue;
		if (!v[i].class || v[i].class >= classes)
			return err_set(err, EINVAL, "enforcement: no class %u", v[i].class);
		class.row = row[v[i].class];
		r = add_name(&rows[k], &v[i], &class, err);
		if (r < 0)
			return r;
		all |= rows[k++].key.prefixlen == KEY_BITS;
	}
	/* What no name covers would be judged as if nothing were known of it. */
	if (k && !all)
		return err_set(err, EINVAL, "enforcement: not all programs have a class");
	*ret_n = k;
	*ret = take_ptr(rows);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "rules/push_fold.h"

#include "rules/field_get.h"

static bool is_plain(const struct access *a)
{
	return !a->tr_n && a->arg < 0;
}

/* ---- texts ---- */

static int text_slot(const struct access *a)
{
	if (a->get == get_fd_name)
		return F_FILE_PATH;
	if (a->slot == F_FILE_PATH || a->slot == F_FILE_OLD_PATH || a->slot == F_PROC_EXE)
		return a->slot;
	return -1;
}

bool push_is_text(const struct atom *a)
{
	if (a->rhs || !is_plain(a->a) || text_slot(a->a) < 0)
		return false;
	switch (a->op) {
	case OP_EQ:
	case OP_NE:
	case OP_IN:
	case OP_INTERSECTS:
	case OP_STARTSWITH:
	case OP_BSTARTSWITH:
	case OP_PMATCH:
		return true;
	default:
		return false;
	}
}

bool push_is_program(const struct atom *a)
{
	return a->a->slot == F_PROC_EXE;
}

bool push_is_program_text(const struct atom *a)
{
	return push_is_program(a) && push_is_text(a);
}

static const struct push_text *known_text(const struct push_known *k, const struct access *a)
{
	switch (text_slot(a)) {
	case F_FILE_PATH:
		return k->kind->family == FAM_FILE ? k->path : NULL;
	case F_FILE_OLD_PATH:
		return k->old_path;
	case F_PROC_EXE:
		return k->exe;
	default:
		return NULL;
	}
}

static bool below(struct str text, struct str dir)
{
	if (str_eqz(dir, "/"))
		return str_starts(text, dir);
	return text.n > dir.n && str_starts(text, dir) && text.p[dir.n] == '/';
}

/* For a prefix: longer constants are prefixes of their own and not meant here. */
static int fold_prefix(const struct atom *a, struct str text)
{
	size_t n = a->set ? strset_count(a->set) : 1;

	switch (a->op) {
	case OP_NE:
		return TRI_TRUE;
	case OP_EQ:
	case OP_IN:
	case OP_INTERSECTS:
		return TRI_FALSE;
	case OP_STARTSWITH:
	case OP_BSTARTSWITH:
		return str_starts(text, a->s);
	default:
		for (size_t i = 0; i < n; i++)
			if (below(text, a->set ? strset_at(a->set, i) : a->s))
				return TRI_TRUE;
		return TRI_FALSE;
	}
}

/* A constant that no key can hold is no range of its own: nothing can be said. */
static bool fits_key(const struct atom *a)
{
	size_t n = a->set ? strset_count(a->set) : 1;

	for (size_t i = 0; i < n; i++) {
		struct str s = a->set ? strset_at(a->set, i) : a->s;

		if (s.n > ENFORCE_PATH_MAX - 2 || memchr(s.p, 0, s.n))
			return false;
	}
	return true;
}

static int run(const struct push_known *k, const struct atom *a)
{
	struct eval e;

	eval_init(&e, k->ev);
	return atom_eval(&e, a);
}

static int fold_text(const struct push_known *k, const struct atom *a, const struct push_text *t)
{
	int slot = text_slot(a->a), r;

	if (t->exact) {
		event_set_str(k->ev, (enum field_id)slot, t->text);
		r = run(k, a);
		event_unset(k->ev, (enum field_id)slot);
		return r;
	}
	if (is_plain(a->a) && a->op == OP_EXISTS)
		return TRI_TRUE;
	return push_is_text(a) && fits_key(a) ? fold_prefix(a, t->text) : TRI_UNKNOWN;
}

/* ---- networks ---- */

bool push_is_ip(const struct atom *a)
{
	return !a->rhs && is_plain(a->a) && (a->a->slot == F_NET_DST_IP || a->a->get == get_fd_sip);
}

bool push_is_port(const struct atom *a)
{
	return !a->rhs && is_plain(a->a) &&
	       (a->a->slot == F_NET_DST_PORT || a->a->get == get_fd_sport);
}

static bool is_family(const struct access *a)
{
	return a->slot == F_NET_FAMILY || a->get == get_fd_type || a->get == get_fd_typechar ||
	       a->get == get_fd_sockfamily;
}

static bool net_covers(const struct net *n, const struct push_net *in)
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;

	if (n->family != (in->family == PUSH_IPV4 ? 4 : 6) || n->bits > in->bits ||
	    memcmp(n->b, in->ip, whole) != 0)
		return false;
	return !rest || ((n->b[whole] ^ in->ip[whole]) & (0xff00u >> rest) & 0xff) == 0;
}

static int fold_ip(const struct push_net *in, const struct atom *a)
{
	bool hit = false;

	if (in->family == PUSH_OTHER)
		return TRI_FALSE;
	if (a->op == OP_EXISTS)
		return TRI_TRUE;
	for (size_t i = 0; i < a->net_n && !hit; i++)
		hit = net_covers(&a->net[i], in);
	return a->op == OP_NE ? !hit : hit;
}

static int fold_family(const struct push_known *k, const struct atom *a)
{
	static const char *const names[] = { [PUSH_IPV4] = "inet", [PUSH_IPV6] = "inet6" };
	int unix_socket, vsock;

	if (k->net.family != PUSH_OTHER) {
		event_set_strz(k->ev, F_NET_FAMILY, names[k->net.family]);
		unix_socket = vsock = run(k, a);
	} else {
		event_set_strz(k->ev, F_NET_FAMILY, "unix");
		unix_socket = run(k, a);
		event_set_strz(k->ev, F_NET_FAMILY, "vsock");
		vsock = run(k, a);
	}
	event_unset(k->ev, F_NET_FAMILY);
	return unix_socket == vsock ? vsock : TRI_UNKNOWN;
}

static int fold_net(const struct push_known *k, const struct atom *a)
{
	int r;

	if (push_is_ip(a))
		return fold_ip(&k->net, a);
	if (!a->rhs && is_family(a->a))
		return fold_family(k, a);
	if (push_is_port(a) && k->net.port >= 0) {
		event_set_u64(k->ev, F_NET_DST_PORT, (uint64_t)k->net.port);
		r = run(k, a);
		event_unset(k->ev, F_NET_DST_PORT);
		return r;
	}
	if (a->a->get == get_fd_is_server || a->a->get == get_fd_name_changed)
		return run(k, a);
	return TRI_UNKNOWN;
}

/* ---- files by inode ---- */

bool push_is_ino(const struct atom *a)
{
	return !a->rhs && is_plain(a->a) && a->a->slot == F_PROC_EXE_INO;
}

bool push_is_dev(const struct atom *a)
{
	return !a->rhs && is_plain(a->a) && a->a->slot == F_PROC_EXE_DEV;
}

/* Of a value that is none of the constants. */
static int fold_other(const struct atom *a)
{
	switch (a->op) {
	case OP_EXISTS:
	case OP_NE:
		return TRI_TRUE;
	case OP_EQ:
	case OP_IN:
	case OP_INTERSECTS:
		return TRI_FALSE;
	default:
		return TRI_UNKNOWN;
	}
}

static int fold_file(const struct push_known *k, const struct atom *a)
{
	int r = TRI_UNKNOWN;

	if (push_is_ino(a) && k->file.ino_other) {
		r = fold_other(a);
	} else if (push_is_ino(a) && k->file.ino_known) {
		event_set_u64(k->ev, F_PROC_EXE_INO, k->file.ino);
		r = run(k, a);
		event_unset(k->ev, F_PROC_EXE_INO);
	} else if (push_is_dev(a) && k->file.dev_other) {
		r = fold_other(a);
	} else if (push_is_dev(a) && k->file.dev_known) {
		event_set_str(k->ev, F_PROC_EXE_DEV, k->file.dev);
		r = run(k, a);
		event_unset(k->ev, F_PROC_EXE_DEV);
	}
	return r;
}

/* ---- the tree ---- */

static int fold_one(const struct push_known *k, const struct atom *a)
{
	const struct push_text *text = a->rhs ? NULL : known_text(k, a->a);
	int r = atom_fold(k->ev, k->kind, k->escape, a);

	if (r != TRI_UNKNOWN)
		return r;
	if (text)
		return fold_text(k, a, text);
	if (push_is_ino(a) || push_is_dev(a))
		return fold_file(k, a);
	if (k->net.family != PUSH_ANY)
		return fold_net(k, a);
	if (k->file_op && !a->rhs && a->a->slot == F_FILE_OP) {
		event_set_strz(k->ev, F_FILE_OP, k->file_op);
		r = run(k, a);
		event_unset(k->ev, F_FILE_OP);
	}
	return r;
}

int push_fold(struct push_known *k, const struct pred *p)
{
	int ends, r;

	switch (p->type) {
	case P_CONST:
		return p->value;
	case P_ATOM:
		r = fold_one(k, p->atom);
		if (r == TRI_UNKNOWN && !k->unknown)
			k->unknown = p->atom->a->row->name;
		return r;
	case P_NOT:
		r = push_fold(k, p->kid[0]);
		return r == TRI_UNKNOWN ? r : !r;
	default:
		break;
	}
	ends = p->type == P_OR; /* the value that decides the chain */
	r = !ends;
	for (size_t i = 0; i < p->n && r != ends; i++) {
		int v = push_fold(k, p->kid[i]);

		if (v == ends || v == TRI_UNKNOWN)
			r = v; /* an end that comes later still decides */
	}
	return r;
}

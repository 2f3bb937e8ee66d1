/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled entries into the kernel's maps. New rows have keys of their own, so nothing is mixed: the one
 * update of `enforce_sets` changes a set over. */
#include "userspace/capture/enforce.h"

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "warder.skel.h"

/* Rows of classes are numbered from here on, behind those of sets; no number comes again. */
#define CLASS_ROWS SHARE_CLASS_ROWS

/* What stands in the maps for a set, to be taken out again: its own tables, then those of its classes. */
struct enforce_group {
	struct enforce_tables *t;
	uint32_t *row;
	size_t n;
	struct enforce_name_row *names;
	size_t names_n;
};

struct enforce_state {
	struct enforce_group sets[ENFORCE_SETS_MAX + 1];
	bool used[ENFORCE_SETS_MAX + 1];
	uint32_t next_keys;
};

/* Does the kernel let a cgroup program send a signal (6.16)? It has to be tried: a helper's presence says
 * nothing about where it may be called. */
static bool cgroup_can_signal(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 9 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_send_signal },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_CGROUP_INET4_CONNECT);
	auto_close int fd = bpf_prog_load(BPF_PROG_TYPE_CGROUP_SOCK_ADDR, "can_signal", "GPL",
					  insns, ARRAY_SIZE(insns), &opts);

	return fd >= 0;
}

void enforce_prepare(struct warder *skel, bool wanted)
{
	bpf_program__set_autoload(skel->progs.on_sock_create, wanted);
	bpf_program__set_autoload(skel->progs.on_device, wanted);
	bpf_program__set_autoload(skel->progs.on_sysctl, wanted);
	skel->rodata->enforce_mode = !wanted		   ? ENFORCE_MODE_OFF
				     : cgroup_can_signal() ? ENFORCE_MODE_SIGNAL
							   : ENFORCE_MODE_SENTENCE;
}

bool enforce_only(const struct warder *skel, const struct bpf_program *p)
{
	return p == skel->progs.on_sock_create || p == skel->progs.on_device ||
	       p == skel->progs.on_sysctl;
}

static void group_done(struct enforce_group *g)
{
	for (size_t i = 0; g->t && i < g->n; i++)
		enforce_tables_done(&g->t[i]);
	free(g->t);
	free(g->row);
	free(g->names);
	memset(g, 0, sizeof(*g));
}

void enforce_state_free(struct enforce_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(s->sets); i++)
		group_done(&s->sets[i]);
	free(s);
}

static int addr_map(const struct capture *c, const struct enforce_addr_row *row)
{
	return bpf_map__fd(row->v6 ? c->skel->maps.enforce_addrs6 : c->skel->maps.enforce_addrs4);
}

/* An IPv4 key is the beginning of an IPv6 one. */
static int put_rows(struct capture *c, const struct enforce_tables *t, struct err *err)
{
	int fd = bpf_map__fd(c->skel->maps.enforce_paths);

	for (size_t i = 0; i < t->paths_n; i++)
		if (bpf_map_update_elem(fd, &t->paths[i].key, &t->paths[i].rules, BPF_ANY) < 0)
			return err_set(err, errno, "enforcement, path '%s' (of %d at most): %m",
				       t->paths[i].key.path, ENFORCE_PATHS_MAX);
	fd = bpf_map__fd(c->skel->maps.enforce_exes);
	for (size_t i = 0; i < t->exes_n; i++)
		if (bpf_map_update_elem(fd, &t->exes[i].key, &t->exes[i].rules, BPF_ANY) < 0)
			return err_set(err, errno, "enforcement, executable (of %d at most): %m",
				       ENFORCE_EXES_MAX);
	for (size_t i = 0; i < t->addrs_n; i++)
		if (bpf_map_update_elem(addr_map(c, &t->addrs[i]), &t->addrs[i].key,
					&t->addrs[i].rules, BPF_ANY) < 0)
			return err_set(err, errno, "enforcement, network (of %d at most): %m",
				       ENFORCE_ADDRS_MAX);
	return 0;
}

static void take_rows(struct capture *c, const struct enforce_tables *t)
{
	for (size_t i = 0; i < t->paths_n; i++)
		bpf_map_delete_elem(bpf_map__fd(c->skel->maps.enforce_paths), &t->paths[i].key);
	for (size_t i = 0; i < t->exes_n; i++)
		bpf_map_delete_elem(bpf_map__fd(c->skel->maps.enforce_exes), &t->exes[i].key);
	for (size_t i = 0; i < t->addrs_n; i++)
		bpf_map_delete_elem(addr_map(c, &t->addrs[i]), &t->addrs[i].key);
}

/* Everything but the set's own row, which changes it over. */
static int put_group(struct capture *c, const struct enforce_group *g, struct err *err)
{
	int sets = bpf_map__fd(c->skel->maps.enforce_sets);
	int names = bpf_map__fd(c->skel->maps.enforce_names);

	for (size_t i = 0; i < g->n; i++) {
		int r = put_rows(c, &g->t[i], err);

		if (r < 0)
			return r;
		if (i > 0 && bpf_map_update_elem(sets, &g->row[i], &g->t[i].set, BPF_ANY) < 0)
			return err_set(err, errno, "enforcement, class of programs: %m");
	}
	for (size_t i = 0; i < g->names_n; i++)
		if (bpf_map_update_elem(names, &g->names[i].key, &g->names[i].class, BPF_ANY) < 0)
			return err_set(err, errno, "enforcement, program '%s' (of %d at most): %m",
				       g->names[i].key.path, ENFORCE_NAMES_MAX);
	return 0;
}

static void take_group(struct capture *c, const struct enforce_group *g)
{
	for (size_t i = 0; i < g->names_n; i++)
		bpf_map_delete_elem(bpf_map__fd(c->skel->maps.enforce_names), &g->names[i].key);
	for (size_t i = 0; i < g->n; i++) {
		if (i > 0)
			bpf_map_delete_elem(bpf_map__fd(c->skel->maps.enforce_sets), &g->row[i]);
		take_rows(c, &g->t[i]);
	}
}

static int put_any(struct capture *c)
{
	const struct enforce_state *s = c->enforce;
	uint32_t zero = 0, n = c->id ? 1 : 0; /* of others there may be some */

	for (size_t i = 0; i < ARRAY_SIZE(s->used); i++)
		n += s->used[i];
	return bpf_map_update_elem(bpf_map__fd(c->skel->maps.enforce_any), &zero, &n, BPF_ANY);
}

static int fill_group(struct enforce_group *g, struct enforce_state *s, uint32_t set,
		      const struct enforce_entry *v, size_t n, struct err *err)
{
	int r;

	for (size_t i = 0; i < g->n; i++) {
		r = enforce_compile(&g->t[i], ++s->next_keys, (unsigned int)i, v, n, err);
		if (r < 0)
			return r;
		g->row[i] = i ? CLASS_ROWS + s->next_keys : set;
	}
	r = enforce_compile_names(&g->names, &g->names_n, ++s->next_keys, g->row, g->n, v, n, err);
	if (r == 0 && g->names_n)
		g->t[0].set.names = s->next_keys;
	return r;
}

static int compile_group(struct enforce_group *ret, struct enforce_state *s, uint32_t set,
			 const struct enforce_entry *v, size_t n, struct err *err)
{
	struct enforce_group g = { .n = 1 };
	int r;

	for (size_t i = 0; i < n; i++)
		g.n = MAX(g.n, (size_t)v[i].class + 1);
	if (g.n > ENFORCE_CLASSES + 1)
		return err_set(err, E2BIG, "enforcement: more than %d classes of programs",
			       ENFORCE_CLASSES);
	g.t = calloc(g.n, sizeof(*g.t));
	g.row = calloc(g.n, sizeof(*g.row));
	r = g.t && g.row ? fill_group(&g, s, set, v, n, err)
			 : err_set(err, ENOMEM, "enforcement: out of memory");
	if (r < 0)
		group_done(&g);
	else
		*ret = g;
	return r;
}

static struct enforce_state *state(struct capture *c)
{
	if (!c->enforce) {
		c->enforce = calloc(1, sizeof(*c->enforce));
		if (c->enforce)
			c->enforce->next_keys = share_keys(c);
	}
	return c->enforce;
}

int capture_enforce_load(struct capture *c, uint32_t set, const struct enforce_entry *v, size_t n,
			 struct err *err)
{
	struct enforce_group g, old;
	struct enforce_state *s;
	uint32_t row;
	int r;

	if (c->skel->rodata->enforce_mode == ENFORCE_MODE_OFF)
		return err_set(err, EINVAL,
			       "enforcement was not asked for when probes were loaded");
	if (set == 0 || set > ENFORCE_SETS_MAX)
		return err_set(err, ERANGE, "enforcement: set %u is not 1 to %d", set,
			       ENFORCE_SETS_MAX);
	s = state(c);
	if (!s)
		return err_set(err, ENOMEM, "enforcement: out of memory");
	if (s->next_keys - share_keys(c) > SHARE_KEYS - 2 * (ENFORCE_CLASSES + 2))
		return err_set(err, ENOSPC, "enforcement: changed too often");
	row = share_row(c, set);
	r = compile_group(&g, s, row, v, n, err);
	if (r < 0)
		return r;
	r = put_group(c, &g, err);
	if (r == 0 && bpf_map_update_elem(bpf_map__fd(c->skel->maps.enforce_sets), &row,
					  &g.t[0].set, BPF_ANY) < 0)
		r = err_set(err, errno, "enforcement, set %u: %m", set);
	if (r < 0) {
		take_group(c, &g);
		group_done(&g);
		return r;
	}
	if (s->used[set]) /* waits until no program is left that began with the old set */
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	old = s->sets[set];
	s->sets[set] = g;
	s->used[set] = true;
	if (put_any(c) < 0)
		r = err_set(err, errno, "enforcement: %m");
	take_group(c, &old);
	group_done(&old);
	return r;
}

int capture_enforce_clear(struct capture *c, uint32_t set)
{
	struct enforce_state *s = c->enforce;
	uint32_t row = share_row(c, set);

	if (!s || set > ENFORCE_SETS_MAX || !s->used[set])
		return -ENOENT;
	if (bpf_map_delete_elem(bpf_map__fd(c->skel->maps.enforce_sets), &row) < 0)
		return -errno;
	s->used[set] = false;
	take_group(c, &s->sets[set]);
	group_done(&s->sets[set]);
	return put_any(c) < 0 ? -errno : 0;
}

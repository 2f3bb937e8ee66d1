// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/guest.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "userspace/base/auto.h"
#include "userspace/pipeline/guest_mirror.h"
#include "userspace/pipeline/guest_priv.h"

#define ERRNO_MAX    4095 /* include/linux/err.h */
#define CLONE_THREAD 0x00010000
#define CLONE_NS     0x7e020080 /* CLONE_NEW* */
#define ARENA_MAX    (1u << 20)
#define AT_CWD	     (-100)

/* ---- tables ---- */

static struct lru_key key_of(const struct guest *g, uint64_t a, uint64_t b)
{
	uint64_t in[2] = { a, b };
	struct lru_key key = { a, b, 0 };

	crypto_shorthash((unsigned char *)&key.hash, (const unsigned char *)in, sizeof(in), g->key);
	return key;
}

static void drop_process(void *ctx, struct lru_node *node)
{
	struct guest_process *p = (struct guest_process *)node;
	struct guest *g = ctx;

	if (g->process == p)
		g->process = NULL;
	free(p->miss);
}

struct guest_process *guest_process(struct guest *g, int32_t pid, bool make)
{
	struct lru_key key = key_of(g, (uint32_t)pid, 0);
	struct guest_process *p = (struct guest_process *)lru_find(&g->processes, &key);

	if (p || !make)
		return p;
	p = (struct guest_process *)lru_add(&g->processes, &key);
	if (p) {
		p->pid = pid;
		p->stdin_type = UINT8_MAX;
	}
	return p;
}

static struct guest_fd *find_fd(const struct guest *g, int32_t pid, int64_t fd)
{
	struct lru_key key = key_of(g, (uint32_t)pid, (uint64_t)fd);

	return (struct guest_fd *)lru_find(&g->fds, &key);
}

/* One that came over a fork is its parent's until it is its own. */
#define GENERATIONS 8

struct guest_fd *guest_fd(struct guest *g, int32_t pid, int64_t fd, bool make)
{
	struct guest_fd *f = find_fd(g, pid, fd), *of = NULL, copy;
	struct guest_process *p = guest_process(g, pid, false);
	struct lru_key key = key_of(g, (uint32_t)pid, (uint64_t)fd);

	if (f || fd < 0 || fd > INT32_MAX)
		return f;
	for (int i = 0; i < GENERATIONS && !of && p && p->ppid; i++) {
		of = find_fd(g, p->ppid, fd);
		p = guest_process(g, p->ppid, false);
	}
	if (!of && !make)
		return NULL;
	copy = of ? *of : (struct guest_fd){ 0 };
	f = (struct guest_fd *)lru_add(&g->fds, &key);
	if (!f)
		return NULL;
	f->pid = pid;
	f->fd = (int32_t)fd;
	guest_fd_copy(f, &copy);
	p = guest_process(g, pid, true);
	if (p)
		p->fds++;
	return f;
}

int guest_new(struct guest **ret, const struct guest_options *opt)
{
	struct guest *g;

	if (sodium_init() < 0)
		return -EIO;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->opt = *opt;
	crypto_shorthash_keygen(g->key);
	lru_init(&g->processes, sizeof(struct guest_process), GUEST_PROCESSES_MAX, drop_process, g);
	lru_init(&g->fds, sizeof(struct guest_fd), GUEST_FDS_MAX, guest_fd_drop, g);
	arena_init(&g->arena, ARENA_MAX);
	buf_init(&g->rec, 2 * WIRE_RECORD_MAX);
	g->next_id = 1;
	g->due = UINT64_MAX;
	if (guest_mirror_new(&g->mirror, g) < 0) {
		guest_free(g);
		return -ENOMEM;
	}
	*ret = g;
	return 0;
}

void guest_free(struct guest *g)
{
	if (!g)
		return;
	g->opt.feed = NULL; /* nobody is told what is dropped now */
	guest_mirror_free(g->mirror);
	lru_done(&g->fds);
	lru_done(&g->processes);
	arena_done(&g->arena);
	buf_done(&g->rec);
	free(g);
}

/* ---- records ---- */

/* Not later than it came, not from before the session, and not from long ago: the sentry says what it likes. */
uint64_t guest_time(const struct guest *g, const struct seccheck_msg *m)
{
	uint64_t t = (uint64_t)m->c.time_ns - (uint64_t)g->offset;

	if (!m->c.time_ns || t > g->now || t < g->opt.since_ns || g->now - t > GUEST_OLD_NS)
		return g->now;
	return t;
}

/* One offset for all: with the pid it says which process it is. */
uint64_t guest_start_of(const struct guest *g, int64_t real_ns)
{
	uint64_t t = (uint64_t)real_ns - (uint64_t)g->opt.real_offset_ns;

	return real_ns && t <= g->now + GUEST_OLD_NS ? t : 1;
}

struct wire_hdr guest_header(const struct guest *g, const struct seccheck_msg *m,
			     enum wire_kind kind)
{
	struct wire_hdr h = {
		.kind = (uint16_t)kind,
		.ts = guest_time(g, m),
		.start = guest_start_of(g, m->c.group_start_ns),
		.sandbox = g->opt.sandbox_id,
		.tgid = (uint32_t)m->c.tgid,
		.tid = (uint32_t)m->c.tid,
		.nspid = (uint32_t)m->c.tgid,
		.uid = m->c.euid,
		.gid = m->c.egid,
		.nr = WIRE_NR_NONE,
		.ring = WIRE_RING_NONE,
		.vantage = WIRE_V_GUEST,
	};

	if (g->process)
		h.ppid = (uint32_t)g->process->ppid;
	guest_name(h.comm, m->c.process_name);
	return h;
}

void guest_call_header(struct wire_hdr *h, const struct seccheck_msg *m)
{
	h->nr = m->sysno < WIRE_NR_NONE ? (uint16_t)m->sysno : WIRE_NR_NONE;
	if (m->error > 0 && m->error <= ERRNO_MAX)
		h->ret = (int32_t)-m->error;
	else
		h->ret = m->result > INT32_MAX ? INT32_MAX : m->result < 0 ? 0 : (int32_t)m->result;
}

void guest_begin(struct guest *g, size_t size)
{
	buf_reset(&g->rec);
	if (buf_reserve(&g->rec, size) == 0) {
		memset(g->rec.p, 0, size);
		g->rec.n = size;
	} else {
		g->rec.failed = true;
	}
}

struct wire_str guest_tail(struct guest *g, struct str s, size_t max)
{
	struct wire_str w = { (uint16_t)g->rec.n, (uint16_t)MIN(s.n, max) };

	if (!s.p || !w.len || g->rec.n + w.len > WIRE_RECORD_MAX - 8 ||
	    buf_add(&g->rec, s.p, w.len) < 0)
		return (struct wire_str){ 0, 0 };
	return w;
}

void guest_send(struct guest *g, void *rec, size_t size)
{
	struct wire_hdr *h = rec;

	while (g->rec.n % 8)
		buf_addc(&g->rec, 0);
	if (g->rec.failed || !g->opt.feed)
		return;
	h->len = (uint32_t)g->rec.n;
	memcpy(g->rec.p, rec, size);
	g->stats.records++;
	g->opt.feed(g->opt.arg, g->rec.p, g->rec.n);
}

struct str guest_base(const struct seccheck_msg *m, struct str path)
{
	if (path.n && path.p[0] == '/')
		return (struct str){ 0 };
	return (int32_t)m->fd == AT_CWD || !m->fd_path.n ? m->c.cwd : m->fd_path;
}

/* ---- packets ---- */

static void cloned(struct guest *g, const struct seccheck_msg *m)
{
	struct wire_fork w = { .h = guest_header(g, m, WIRE_FORK) };
	struct guest_process *child;
	const uint64_t args[6] = { m->flags };

	if (m->flags & CLONE_NS)
		guest_escape(g, m, WIRE_ESCAPE_CLONE_NS, (struct str){ 0 }, args);
	if (m->new_tid != m->new_tgid || m->new_tgid == m->c.tgid || m->new_tgid <= 0)
		return;
	child = guest_process(g, m->new_tgid, true);
	if (child) {
		child->ppid = m->c.tgid;
		child->stdin_type = g->process ? g->process->stdin_type : UINT8_MAX;
		memcpy(child->comm, w.h.comm, sizeof(child->comm));
	}
	w.h.ret = m->new_tgid;
	w.child_tgid = w.child_nspid = (uint32_t)m->new_tgid;
	w.child_start = guest_start_of(g, m->new_start_ns);
	w.clone_flags = m->flags;
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
}

static void ended(struct guest *g, const struct seccheck_msg *m)
{
	struct wire_exit w = { .h = guest_header(g, m, WIRE_EXIT) };
	struct guest_process *p = g->process;

	if (m->c.tid != m->c.tgid)
		return;
	guest_fds_close(g, m->c.tgid);
	w.status = (uint32_t)m->exit_status & 0xffff;
	if (m->c.tgid == 1) {
		g->stats.ended = true;
		g->stats.status = w.status;
	}
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
	g->process = NULL;
	if (p)
		lru_remove(&g->processes, &p->node);
}

static void chrooted(struct guest *g, const struct seccheck_msg *m)
{
	if (m->has_exit)
		guest_escape(g, m, WIRE_ESCAPE_CHROOT, m->path, NULL);
}

static void handle(struct guest *g, const struct seccheck_msg *m)
{
	guest_limit(g, m);
	switch (m->type) {
	case SECCHECK_CLONE_CALL: /* of interest only where a limit refused it */
	case SECCHECK_FORK_CALL:
		break;
	case SECCHECK_START:
		g->stats.started = true;
		guest_start(g, m);
		break;
	case SECCHECK_CLONE:
		cloned(g, m);
		break;
	case SECCHECK_EXEC:
		guest_exec(g, m);
		break;
	case SECCHECK_TASK_EXIT:
		ended(g, m);
		break;
	case SECCHECK_RAW:
		guest_raw(g, m);
		break;
	case SECCHECK_OPEN:
		guest_open(g, m);
		break;
	case SECCHECK_WRITE:
		guest_write(g, m, m->fd, m->fd_path, (uint64_t)m->result);
		break;
	case SECCHECK_CONNECT:
		guest_addressed(g, m, WIRE_NET_CONNECT);
		break;
	case SECCHECK_BIND:
		guest_addressed(g, m, WIRE_NET_BIND);
		break;
	case SECCHECK_ACCEPT:
		guest_addressed(g, m, WIRE_NET_ACCEPT);
		break;
	case SECCHECK_EXECVE:
		guest_exec_call(g, m);
		break;
	case SECCHECK_SOCKET:
		guest_socket(g, m);
		break;
	case SECCHECK_DUP:
		guest_dup(g, m);
		break;
	case SECCHECK_CHROOT:
		chrooted(g, m);
		break;
	default:
		g->stats.unknown++;
	}
}

/* It counts for itself, and wraps. One that goes back is a lie. */
static void count_drops(struct guest *g, uint32_t said)
{
	uint32_t more = said - g->drops;

	if (more > INT32_MAX)
		g->stats.drops_back++;
	else
		g->stats.dropped += more;
	g->drops = said;
}

/* Is this about the same exec, and not about what the process did next? */
static bool is_of_exec(const struct seccheck_msg *m)
{
	return m->type == SECCHECK_EXEC || m->type == SECCHECK_EXECVE ||
	       (m->type == SECCHECK_RAW && (m->sysno == 59 || m->sysno == 322));
}

void guest_packet(struct guest *g, struct str packet, uint64_t boot_ns, int64_t real_offset_ns)
{
	struct seccheck_msg m;

	arena_reset(&g->arena);
	g->stats.packets++;
	g->now = boot_ns;
	g->offset = real_offset_ns;
	if (seccheck_parse(packet, &m) != SECCHECK_OK) {
		g->stats.bad++;
		return;
	}
	count_drops(g, m.dropped);
	g->process = m.c.tgid > 0 ? guest_process(g, m.c.tgid, true) : NULL;
	if (g->process) {
		lru_touch(&g->processes, &g->process->node);
		if ((g->process->exec_at || g->process->misses) && !is_of_exec(&m) &&
		    (m.c.tid == m.c.tgid || m.c.tid == g->process->exec.c.tid))
			guest_exec_over(g, g->process);
	}
	handle(g, &m);
}

void guest_tick(struct guest *g, uint64_t boot_ns)
{
	struct lru_node *node, *older;

	if (boot_ns < g->due)
		return;
	g->due = UINT64_MAX;
	g->now = boot_ns;
	for (node = g->processes.newest; node; node = older) {
		struct guest_process *p = (struct guest_process *)node;

		older = node->older;
		if (!p->exec_at)
			continue;
		g->process = p;
		if (boot_ns - p->exec_at >= GUEST_EXEC_WAIT_NS)
			guest_exec_over(g, p);
		else
			g->due = MIN(g->due, p->exec_at + GUEST_EXEC_WAIT_NS);
	}
	g->process = NULL;
	g->due = MIN(g->due, guest_mirror_tick(g));
}

uint64_t guest_deadline(const struct guest *g)
{
	return g->due;
}

unsigned guest_stage(const struct guest *g)
{
	return g->stats.started + g->stats.ended;
}

void guest_stats(const struct guest *g, struct guest_stats *ret)
{
	*ret = g->stats;
}

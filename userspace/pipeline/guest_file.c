// SPDX-License-Identifier: Apache-2.0
/* Files that the guest opens and writes. That a descriptor was closed is not asked for, since it would double what is
 * told: its writes are summed up when its number is used again, or when its process ends. */
#include <errno.h>
#include <fcntl.h>

#include "userspace/base/auto.h"
#include "userspace/capture/watched.h"
#include "userspace/event/path.h"
#include "userspace/pipeline/guest_mirror.h"
#include "userspace/pipeline/guest_priv.h"

/* ---- descriptors ---- */

static void send_total(struct guest *g, const struct guest_fd *f)
{
	struct seccheck_msg m = { .c = { .tid = f->pid, .tgid = f->pid } };
	struct guest_process *p = guest_process(g, f->pid, false);
	struct wire_file w;

	if (p) {
		m.c = p->exec.c;
		m.c.tid = m.c.tgid = f->pid;
	}
	w = (struct wire_file){
		.h = guest_header(g, &m, WIRE_FILE_WRITE),
		.id = f->id,
		.size = f->bytes,
		.count = f->writes,
		.first_ts = f->first_ts,
		.op = WIRE_WRITE_TOTAL,
		.fd = f->fd,
	};
	if (p) {
		w.h.ppid = (uint32_t)p->ppid;
		memcpy(w.h.comm, p->comm, sizeof(w.h.comm));
	}
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
}

/* From the table of descriptors. */
void guest_fd_drop(void *ctx, struct lru_node *node)
{
	struct guest_fd *f = (struct guest_fd *)node;
	struct guest *g = ctx;
	struct guest_process *p;

	if (!g->opt.feed)
		return;
	p = guest_process(g, f->pid, false);
	if (p && p->fds)
		p->fds--;
	if (f->writes > 1) /* one was told as the first */
		send_total(g, f);
}

static void forget(struct guest *g, int32_t pid, int64_t fd)
{
	struct guest_fd *f = guest_fd(g, pid, fd, false);

	if (f)
		lru_remove(&g->fds, &f->node);
}

void guest_fds_close(struct guest *g, int32_t pid)
{
	struct guest_process *p = guest_process(g, pid, false);
	struct lru_node *node, *older;

	for (node = g->fds.newest; p && p->fds && node; node = older) {
		older = node->older;
		if (((struct guest_fd *)node)->pid == pid)
			lru_remove(&g->fds, node);
	}
}

/* What stands behind a descriptor, by the name that the sentry has for it. Another thread cannot change that, but
 * the descriptor can be closed and its number used again: who asks for a socket at 0 has made it one. */
static uint8_t stdin_type(struct str name)
{
	static const struct {
		const char *begins;
		uint8_t type;
	} names[] = {
		{ "socket:", WIRE_STDIN_SOCKET }, { "pipe:", WIRE_STDIN_PIPE },
		{ "/dev/null", WIRE_STDIN_NULL }, { "/dev/pts/", WIRE_STDIN_TTY },
		{ "/", WIRE_STDIN_FILE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_starts(name, str_from(names[i].begins)))
			return names[i].type;
	return UINT8_MAX;
}

void guest_dup(struct guest *g, const struct seccheck_msg *m)
{
	struct guest_fd *from, *to, copy;

	if (!m->has_exit || m->error || m->fd == m->new_fd)
		return;
	if (!m->new_fd && g->process)
		g->process->stdin_type = stdin_type(m->fd_path);
	forget(g, m->c.tgid, m->new_fd);
	from = guest_fd(g, m->c.tgid, m->fd, false);
	if (!from)
		return;
	copy = *from;
	to = guest_fd(g, m->c.tgid, m->new_fd, true);
	if (!to)
		return;
	guest_fd_copy(to, &copy);
}

/* ---- what is told ---- */

static bool below(struct str path, const char *dir)
{
	size_t n = strlen(dir);

	return path.n > n && memcmp(path.p, dir, n) == 0 && path.p[n] == '/';
}

/* Of the operator's list: the entry's number, from 1 on; 0 = none. */
static uint32_t listed(const struct guest *g, struct str path)
{
	for (size_t i = 0; i < g->opt.watch_n; i++) {
		struct str w = str_from(g->opt.watch[i]);

		while (w.n > 1 && w.p[w.n - 1] == '/')
			w.n--;
		if (str_starts(path, w) && (path.n == w.n || path.p[w.n] == '/'))
			return (uint32_t)i + 1;
	}
	return 0;
}

/* As bpf/lib/object.bpf.h has it, by the name alone: in the guest there is nothing else. */
static enum wire_escape_type steers(struct str path, uint32_t class, bool writes, bool there)
{
	if ((class == WATCHED_DEVICE || class == WATCHED_PROC_MEM) && below(path, "/dev"))
		return WIRE_ESCAPE_DEVICE;
	if (!writes)
		return 0;
	if (class == WATCHED_PROC_MEM && below(path, "/proc"))
		return WIRE_ESCAPE_PROC_MEM;
	if (below(path, "/proc/sys") || below(path, "/sys"))
		return there || class == WATCHED_STEERS ? WIRE_ESCAPE_KERNEL_FILE : 0;
	return class == WATCHED_STEERS && (there || below(path, "/proc")) ? WIRE_ESCAPE_KERNEL_FILE
									  : 0;
}

void guest_escape(struct guest *g, const struct seccheck_msg *m, enum wire_escape_type type,
		  struct str detail, const uint64_t args[6])
{
	struct wire_escape w = { .h = guest_header(g, m, WIRE_ESCAPE), .type = type };

	if (m->has_exit)
		guest_call_header(&w.h, m);
	if (args)
		memcpy(w.args, args, sizeof(w.args));
	guest_begin(g, sizeof(w));
	w.detail = guest_tail(g, detail, WIRE_PATH_MAX);
	if (w.detail.len)
		w.h.flags |= WIRE_F_TOCTOU;
	guest_send(g, &w, sizeof(w));
}

/* Terminals and the like: writing there is no act on a file. */
static bool is_plain(struct str path)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/tty" };

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (str_eqz(path, devices[i]))
			return false;
	return path.n && path.p[0] == '/' && !below(path, "/dev/pts");
}

/* creat() has no flags of its own. */
static uint32_t flags_of(const struct seccheck_msg *m)
{
	return m->sysno == 85 ? O_CREAT | O_WRONLY | O_TRUNC : (uint32_t)m->flags;
}

static void send_open(struct guest *g, const struct seccheck_msg *m, uint32_t flags, uint32_t entry)
{
	struct wire_file w = {
		.h = guest_header(g, m, WIRE_FILE_OPEN),
		.open_flags = flags,
		.mode = 0,
		.fd = m->error ? -1 : (int32_t)m->result,
		.op = entry,
	};
	struct guest_fd *f = NULL;

	guest_call_header(&w.h, m);
	/* The name is read again for the message: another thread can show another one. */
	w.h.flags |= WIRE_F_TOCTOU;
	if (!m->error && flags & O_ACCMODE)
		f = guest_fd(g, m->c.tgid, m->result, true);
	if (f)
		w.id = f->id = g->next_id++;
	guest_begin(g, sizeof(w));
	w.base = guest_tail(g, guest_base(m, m->path), WIRE_PATH_MAX);
	w.path = guest_tail(g, m->path, WIRE_PATH_MAX);
	guest_send(g, &w, sizeof(w));
}

void guest_open(struct guest *g, const struct seccheck_msg *m)
{
	uint32_t flags = flags_of(m), class, entry;
	bool writes = flags & (O_ACCMODE | O_CREAT | O_TRUNC);
	enum wire_escape_type type;
	struct str path;

	if (!m->has_exit)
		return;
	guest_mirror_told(g, m);
	if (!m->error)
		forget(g, m->c.tgid, m->result);
	path = path_join(&g->arena, guest_base(m, m->path), m->path);
	if (!path.p)
		return;
	class = watched_class_of(path);
	entry = listed(g, path);
	type = steers(path, class, writes, guest_is_told(m->error));
	if ((writes && guest_is_told(m->error) && is_plain(path)) || entry ||
	    (class == WATCHED_FILE && (guest_is_told(m->error) || m->error == ENOENT)) || type)
		send_open(g, m, flags, entry);
	if (type)
		guest_escape(g, m, type, path, NULL);
}

void guest_write(struct guest *g, const struct seccheck_msg *m, int64_t fd, struct str path,
		 uint64_t bytes)
{
	struct wire_file w;
	struct guest_fd *f;

	if (!m->has_exit || m->error || (path.n && !is_plain(path)))
		return;
	f = guest_fd(g, m->c.tgid, fd, path.n > 0);
	if (!f || (!path.n && !f->id))
		return;
	lru_touch(&g->fds, &f->node);
	f->bytes += bytes;
	f->last_ts = guest_time(g, m);
	if (f->writes++)
		return;
	f->first_ts = f->last_ts;
	if (!f->id)
		f->id = g->next_id++;
	if (g->process) { /* who it is, for the sum */
		g->process->exec.c = m->c;
		g->process->exec.c.process_name = (struct str){ 0 };
		g->process->exec.c.cwd = g->process->exec.c.container_id = (struct str){ 0 };
	}
	w = (struct wire_file){
		.h = guest_header(g, m, WIRE_FILE_WRITE),
		.id = f->id,
		.size = f->bytes,
		.count = 1,
		.first_ts = f->first_ts,
		.op = WIRE_WRITE_FIRST,
		.fd = (int32_t)fd,
	};
	w.h.nr = m->sysno < WIRE_NR_NONE ? (uint16_t)m->sysno : WIRE_NR_NONE;
	if (g->process)
		memcpy(g->process->comm, w.h.comm, sizeof(w.h.comm));
	guest_begin(g, sizeof(w));
	w.path = guest_tail(g, path, WIRE_PATH_MAX);
	guest_send(g, &w, sizeof(w));
}

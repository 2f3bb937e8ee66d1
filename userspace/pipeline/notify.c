// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/notify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/call_table.h"
#include "userspace/pipeline/record.h"

#define STATUS_MAX 16384

/* ---- how many ---- */

uint64_t notify_wait(const struct notify *n, uint64_t now)
{
	uint64_t ahead = (uint64_t)NOTIFY_BURST * NOTIFY_EVERY_NS;

	return n->due > now + ahead ? n->due - now - ahead : 0;
}

void notify_took(struct notify *n, uint64_t now)
{
	n->due = MAX(n->due, now) + NOTIFY_EVERY_NS;
}

/* ---- who ---- */

static struct notify_birth *births_of(const struct notify *n, uint32_t tgid)
{
	size_t row = tgid * NOTIFY_BIRTH_WAYS % NOTIFY_BIRTHS;

	return (struct notify_birth *)n->births + row;
}

static void note_birth(struct notify *n, uint32_t tgid, uint64_t start)
{
	struct notify_birth *b = births_of(n, tgid), *to = b;

	for (size_t i = 0; i < NOTIFY_BIRTH_WAYS; i++) {
		if (b[i].tgid == tgid) {
			to = &b[i];
			break;
		}
		if (b[i].start < to->start) /* free, or the oldest */
			to = &b[i];
	}
	*to = (struct notify_birth){ start, tgid };
}

void notify_see(struct notify *n, const void *rec, size_t len)
{
	const struct wire_fork *f = rec;
	uint16_t kind;

	if (len < sizeof(struct wire_hdr))
		return;
	kind = f->h.kind;
	if (kind == WIRE_FORK && len >= sizeof(*f))
		note_birth(n, f->child_tgid, f->child_start);
	else if (kind == WIRE_EXEC && f->h.start)
		note_birth(n, f->h.tgid, f->h.start);
}

static uint64_t number_at(const char *text, const char *key, unsigned skip)
{
	const char *p = strstr(text, key);

	if (!p)
		return 0;
	p += strlen(key);
	for (; skip; skip--) {
		p += strspn(p, "\t ");
		p += strcspn(p, "\t \n");
	}
	return strtoull(p, NULL, 10);
}

/* The last one of the line: as the innermost namespace has it. */
static uint32_t last_number(const char *text, const char *key)
{
	const char *p = strstr(text, key), *end;
	uint32_t v = 0;

	if (!p)
		return 0;
	p += strlen(key);
	end = p + strcspn(p, "\n");
	while (p < end) {
		p += strspn(p, "\t ");
		if (p >= end)
			break;
		v = (uint32_t)strtoul(p, NULL, 10);
		p += strcspn(p, "\t \n");
	}
	return v;
}

static uint64_t tick_ns(void)
{
	return NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t start_tick(int proc_fd, uint32_t tgid)
{
	auto_free char *text = NULL;
	const char *p;
	char path[32];

	snprintf(path, sizeof(path), "%u/stat", tgid);
	if (file_read_at(proc_fd, path, STATUS_MAX, &text, NULL) < 0)
		return 0;
	p = strrchr(text,
		    ')'); /* behind a name that may hold anything: state is field 3, start 22 */
	for (unsigned i = 0; p && i < 20; i++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) * tick_ns() : 0;
}

/* Numbers of processes come again, so /proc's coarser one has to be the same. */
void notify_find_start(const struct notify *n, struct wire_escape *rec)
{
	const struct notify_birth *b = births_of(n, rec->h.tgid);
	uint64_t tick = tick_ns(), at = rec->h.start;

	rec->h.start = 0;
	for (size_t i = 0; i < NOTIFY_BIRTH_WAYS; i++)
		if (b[i].start && b[i].tgid == rec->h.tgid && b[i].start / tick == at / tick)
			rec->h.start = b[i].start;
}

static void fill_who(struct wire_hdr *h, int proc_fd)
{
	auto_free char *status = NULL, *comm = NULL;
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%u/status", h->tid);
	if (file_read_at(proc_fd, path, STATUS_MAX, &status, NULL) < 0)
		return;
	h->tgid = (uint32_t)number_at(status, "\nTgid:", 0);
	h->ppid = (uint32_t)number_at(status, "\nPPid:", 0);
	h->uid = (uint32_t)number_at(status, "\nUid:", 1); /* effective */
	h->gid = (uint32_t)number_at(status, "\nGid:", 1);
	h->nspid = last_number(status, "\nNStgid:");
	h->start = start_tick(proc_fd, h->tgid);
	snprintf(path, sizeof(path), "%u/comm", h->tid);
	if (file_read_at(proc_fd, path, STATUS_MAX, &comm, &len) == 0 && len)
		memcpy(h->comm, comm, MIN(len - 1, sizeof(h->comm) - 1)); /* without its newline */
}

/* ---- what ---- */

/* What no row is about, of the kind of those that probes look at. */
static const struct {
	int nr;
	uint32_t type;
} types[] = {
	{ SYS_io_uring_enter, WIRE_ESCAPE_IO_URING },
	{ SYS_io_uring_register, WIRE_ESCAPE_IO_URING },
	{ SYS_fanotify_mark, WIRE_ESCAPE_FANOTIFY },
#ifdef SYS_create_module
	{ SYS_create_module, WIRE_ESCAPE_MODULE },
#endif
	{ SYS_socket, WIRE_ESCAPE_SOCKET_FAMILY },
	{ SYS_socketpair, WIRE_ESCAPE_SOCKET_FAMILY },
};

uint32_t notify_type(int nr)
{
	if (nr >= 0 && nr < CALLS_MAX && call_table[nr].slot == SLOT_ESCAPE)
		return call_table[nr].what;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].nr == nr)
			return types[i].type;
	return WIRE_ESCAPE_SECCOMP;
}

void notify_record(struct wire_escape *ret, uint32_t sandbox_id, int proc_fd,
		   const struct seccomp_notif *req, int error)
{
	record_escape(ret, sandbox_id, (enum wire_escape_type)notify_type(req->data.nr));
	ret->h.nr = (uint16_t)req->data.nr;
	ret->h.ret = -error;
	memcpy(ret->args, req->data.args, sizeof(ret->args));
	notify_forget_who(ret, req);
	fill_who(&ret->h, proc_fd);
}

void notify_forget_who(struct wire_escape *rec, const struct seccomp_notif *req)
{
	rec->h.tgid = rec->h.tid = req->pid;
	rec->h.ppid = rec->h.uid = rec->h.gid = rec->h.nspid = 0;
	rec->h.start = 0;
	memset(rec->h.comm, 0, sizeof(rec->h.comm));
}

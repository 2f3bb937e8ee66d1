// SPDX-License-Identifier: Apache-2.0
/* Calls of which the guest's side tells the number, the raw arguments and the result. What an argument points to is not
 * in the message: where names matter they are the host mirror's to tell. */
#include <errno.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/pipeline/call_table.h"
#include "userspace/pipeline/guest_mirror.h"
#include "userspace/pipeline/guest_priv.h"

#define CLONE_NS	  0x7e020080
#define PERSONALITY_QUERY 0xffffffff

/* As in bpf/escape.bpf.c. What only a pointer says counts as harmless: gVisor has no such call, or tells it by
 * another message. */
static bool is_harmless(const struct seccheck_msg *m, uint32_t type)
{
	uint64_t mode;

	switch (type) {
	case WIRE_ESCAPE_UNSHARE:
		return !(m->args[0] & CLONE_NS);
	case WIRE_ESCAPE_CLONE_NS:
		return true;
	case WIRE_ESCAPE_PERSONALITY:
		return (uint32_t)m->args[0] == PERSONALITY_QUERY;
	case WIRE_ESCAPE_TIME:
		return m->sysno == 159 || m->sysno == 305;
	case WIRE_ESCAPE_MKNOD:
		mode = m->args[m->sysno == 259 ? 2 : 1] & S_IFMT;
		return mode != S_IFBLK && mode != S_IFCHR;
	default:
		return false;
	}
}

/* sendfile, splice, copy_file_range: bytes that go into a file without a write. */
static void moved(struct guest *g, const struct seccheck_msg *m, const struct call *c)
{
	if (c->dir >= 0 && m->result > 0)
		guest_write(g, m, (int32_t)m->args[c->dir], (struct str){ 0 }, (uint64_t)m->result);
}

void guest_raw(struct guest *g, const struct seccheck_msg *m)
{
	const struct call *c = &call_table[m->sysno < CALLS_MAX ? m->sysno : 0];

	if (m->sysno >= CALLS_MAX)
		return;
	if (c->slot == SLOT_EXEC) {
		if (!m->has_exit)
			guest_exec_begins(g, m);
		return;
	}
	if (!m->has_exit)
		return;
	if (c->slot != SLOT_FILE || guest_is_told(m->error))
		guest_mirror_act(g, m);
	switch (c->slot) {
	case SLOT_ESCAPE:
		if (!is_harmless(m, c->what))
			guest_escape(g, m, c->what, (struct str){ 0 }, m->args);
		break;
	case SLOT_WRITE:
		moved(g, m, c);
		break;
	case SLOT_NET:
		if (m->sysno == 50)
			guest_listen(g, m);
		break;
	default:
		break;
	}
}

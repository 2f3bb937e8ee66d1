// SPDX-License-Identifier: Apache-2.0
/* escape: one attempt; raw arguments said in words where they are flags or commands. */
#include <string.h>
#include <sys/ioctl.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/names.h"

static struct str name_or_number(struct decode_ctx *c, const char *name, uint64_t v)
{
	return name ? str_from(name) : arena_printf(c->ev->arena, "%#llx", (unsigned long long)v);
}

/* "NAME pid 123" */
static struct str with_pid(struct decode_ctx *c, const char *name, uint64_t pid)
{
	return arena_printf(c->ev->arena, "%s pid %d", name, (int)pid);
}

static struct str clone_flags(struct decode_ctx *c, uint64_t flags)
{
	uint64_t all = 0;

	for (const struct flag_name *f = clone_flag_names; f->mask; f++)
		all |= f->mask;
	return flags_text(c->ev->arena, clone_flag_names, flags & all);
}

static struct str mount_text(struct decode_ctx *c, const struct wire_escape *w)
{
	struct str call = event_str(c->ev, F_SYSCALL);

	/* mount(source, target, type, flags, data); the others have no flags worth naming */
	return str_eqz(call, "mount") ? flags_text(c->ev->arena, mount_flag_names, w->args[3])
				      : (struct str){ 0 };
}

static struct str keyctl_text(struct decode_ctx *c, const struct wire_escape *w)
{
	struct str call = event_str(c->ev, F_SYSCALL);

	/* add_key and request_key have strings: type and description */
	return str_eqz(call, "keyctl") ? name_or_number(c, name_keyctl(w->args[0]), w->args[0])
				       : (struct str){ 0 };
}

static struct str personality_text(struct decode_ctx *c, const struct wire_escape *w)
{
	return flags_text(c->ev->arena, personality_flag_names, (uint32_t)w->args[0]);
}

static struct str ptrace_text(struct decode_ctx *c, const struct wire_escape *w)
{
	struct str request = name_or_number(c, name_ptrace(w->args[0]), w->args[0]);

	return w->args[0] && request.p ? with_pid(c, request.p, w->args[1]) : request;
}

/* Seen twice: as a call (flags of clone3 are behind a pointer), and, when it worked, as the new task. */
static struct str clone_ns_text(struct decode_ctx *c, const struct wire_escape *w)
{
	struct str flags;

	if (str_eqz(event_str(c->ev, F_SYSCALL), "clone3"))
		return (struct str){ 0 };
	flags = clone_flags(c, w->args[0]);
	return w->new_value && flags.p ? with_pid(c, flags.p, w->new_value) : flags;
}

static struct str foreign_text(struct decode_ctx *c)
{
	/* i386 or x32: the number does not say which, so it gets no name */
	event_unset(c->ev, F_SYSCALL);
	return arena_printf(c->ev->arena, "32-bit or x32 call %u", c->ev->hdr.nr);
}

/* args: both halves of the address in network order, port, family. */
static struct str metadata_text(struct decode_ctx *c, const struct wire_escape *w)
{
	struct ip_addr ip;
	uint8_t b[16];
	char text[46];

	memcpy(b, w->args, sizeof(b));
	if (!decode_ip((uint16_t)w->args[3], b, &ip))
		return (struct str){ 0 };
	ip_addr_text(&ip, text);
	return arena_printf(c->ev->arena, ip.family == 6 ? "[%s]:%u" : "%s:%u", text,
			    (unsigned)(uint16_t)w->args[2]);
}

static struct str gain_text(const struct wire_escape *w)
{
	uint64_t gain = w->args[0];

	if (gain & GAIN_ROOT)
		return gain & GAIN_CAPS ? STR("user id 0 and capabilities") : STR("user id 0");
	if (gain & GAIN_CAPS)
		return STR("capabilities");
	return gain & GAIN_UID ? STR("user id") : (struct str){ 0 };
}

/* Of ioctl it is the request that says what was tried. */
static struct str refused_text(struct decode_ctx *c, const struct wire_escape *w)
{
	static const struct {
		uint32_t request;
		const char *name;
	} names[] = { { TIOCSTI, "TIOCSTI" }, { TIOCLINUX, "TIOCLINUX" } };

	if (!str_eqz(event_str(c->ev, F_SYSCALL), "ioctl"))
		return (struct str){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].request == (uint32_t)w->args[1])
			return str_from(names[i].name);
	return name_or_number(c, NULL, (uint32_t)w->args[1]);
}

/* In words what the arguments say; p == NULL where they say nothing to a reader. */
static struct str args_text(struct decode_ctx *c, const struct wire_escape *w)
{
	switch ((enum wire_escape_type)w->type) {
	case WIRE_ESCAPE_SETNS:
		return w->args[1] ? clone_flags(c, w->args[1]) : STR("any namespace");
	case WIRE_ESCAPE_UNSHARE:
		return flags_text(c->ev->arena, clone_flag_names, w->args[0]);
	case WIRE_ESCAPE_CLONE_NS:
		return clone_ns_text(c, w);
	case WIRE_ESCAPE_MOUNT:
		return mount_text(c, w);
	case WIRE_ESCAPE_PTRACE:
		return ptrace_text(c, w);
	case WIRE_ESCAPE_BPF:
		return name_or_number(c, name_bpf_cmd(w->args[0]), w->args[0]);
	case WIRE_ESCAPE_KEYCTL:
		return keyctl_text(c, w);
	case WIRE_ESCAPE_PROCESS_VM:
		return with_pid(c, "target", w->args[0]);
	case WIRE_ESCAPE_PERSONALITY:
		return personality_text(c, w);
	case WIRE_ESCAPE_SOCKET_FAMILY:
		return name_or_number(c, name_family((uint32_t)w->args[0]), w->args[0]);
	case WIRE_ESCAPE_FOREIGN_ABI:
		return foreign_text(c);
	case WIRE_ESCAPE_CRED_GAIN:
		return gain_text(w);
	case WIRE_ESCAPE_NS_CHANGE:
		return flags_text(c->ev->arena, clone_flag_names, w->args[0]);
	case WIRE_ESCAPE_METADATA:
		return metadata_text(c, w);
	case WIRE_ESCAPE_SECCOMP:
		return refused_text(c, w);
	default:
		return (struct str){ 0 };
	}
}

/* Types whose own string is the thing itself; for the others what the arguments say comes first. */
static bool string_comes_first(uint32_t type)
{
	return type == WIRE_ESCAPE_MOUNT;
}

void decode_escape(struct decode_ctx *c)
{
	const struct wire_escape w = DECODE_FIXED(c, wire_escape);
	struct str detail = decode_string(c, w.detail), target = decode_string(c, w.detail2);
	struct str words = args_text(c, &w);
	const char *type = event_escape_name(w.type);
	struct event *ev = c->ev;

	if (type)
		event_set_strz(ev, F_ESCAPE_TYPE, type);
	else
		event_set_str(ev, F_ESCAPE_TYPE, arena_printf(ev->arena, "type_%u", w.type));
	if (words.p && (!detail.p || !string_comes_first(w.type))) {
		if (!target.p)
			target = detail;
		detail = words;
	}
	event_set_str(ev, F_ESCAPE_DETAIL, detail);
	event_set_str(ev, F_ESCAPE_TARGET, target);
	if ((w.old_value || w.new_value) && w.type != WIRE_ESCAPE_CLONE_NS) {
		event_set_u64(ev, F_ESCAPE_OLD, w.old_value);
		event_set_u64(ev, F_ESCAPE_NEW, w.new_value);
	}
	if (ev->hdr.nr != WIRE_NR_NONE) {
		event_set_u64(ev, F_ESCAPE_ARG0, w.args[0]);
		event_set_u64(ev, F_ESCAPE_ARG1, w.args[1]);
		event_set_u64(ev, F_ESCAPE_ARG2, w.args[2]);
	} else if (ev->hdr.ret == 0 && !(ev->hdr.flags & WIRE_F_DENIED) &&
		   w.type != WIRE_ESCAPE_CLONE_NS) {
		event_unset(ev, F_OUTCOME); /* a finding, not a call: there is no result */
	}
	event_set_bool(ev, F_ESCAPE_KILLED, ev->hdr.flags & WIRE_F_KILLED);
}

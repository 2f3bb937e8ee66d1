// SPDX-License-Identifier: Apache-2.0
/* The door for records: size and id are checked here, the common slots filled, the rest done by the
 * kind's decoder out of the table below. */
#include "userspace/event/decode.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/decoder.h"
#include "userspace/event/names.h"

/* More words than this in one list are cut: each costs 16 bytes of arena. All empty words of the
 * longest argv fit. */
#define WORDS_MAX WIRE_ARGS_MAX

struct handler {
	uint16_t size; /* of the kind's struct; 0 = no record of this kind exists */
	bool outcome;  /* hdr.ret is the result of a call */
	decode_fn *fn;
};

/* One line a kind; a kind in WIRE_KINDS without its line does not compile. */
/* clang-format off */
#define HANDLER_EXEC            { sizeof(struct wire_exec), true, decode_exec }
#define HANDLER_FORK            { sizeof(struct wire_fork), true, decode_fork }
#define HANDLER_EXIT            { sizeof(struct wire_exit), false, decode_exit }
#define HANDLER_SIGNAL          { sizeof(struct wire_signal), true, decode_signal }
#define HANDLER_FILE_OPEN       { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_FILE_WRITE      { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_FILE_RENAME     { sizeof(struct wire_file), true, decode_file_rename }
#define HANDLER_FILE_DELETE     { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_FILE_LINK       { sizeof(struct wire_file), true, decode_file_link }
#define HANDLER_FILE_ATTR       { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_FILE_MKDIR      { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_FILE_MKNOD      { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_FILE_MMAP       { sizeof(struct wire_file), true, decode_file_object }
#define HANDLER_MOUNT           { sizeof(struct wire_mount), true, decode_mount }
#define HANDLER_NET_CONNECT     { sizeof(struct wire_net), true, decode_net }
#define HANDLER_NET_LISTEN      { sizeof(struct wire_net), true, decode_net }
#define HANDLER_NET_ACCEPT      { sizeof(struct wire_net), true, decode_net }
#define HANDLER_NET_SEND        { sizeof(struct wire_net), true, decode_net }
#define HANDLER_NET_CLOSE       { sizeof(struct wire_net), false, decode_net }
#define HANDLER_NET_BIND        { sizeof(struct wire_net), true, decode_net }
#define HANDLER_NET_SOCKET      { sizeof(struct wire_net), true, decode_net }
#define HANDLER_NET_REQUEST     { sizeof(struct wire_request), true, decode_request }
#define HANDLER_DNS_QUERY       { sizeof(struct wire_dns), false, decode_dns }
#define HANDLER_DNS_ANSWER      { sizeof(struct wire_dns), false, decode_dns }
#define HANDLER_OOM             { sizeof(struct wire_oom), false, decode_oom }
#define HANDLER_LIMIT           { sizeof(struct wire_limit_hit), true, decode_limit }
#define HANDLER_USAGE           { sizeof(struct wire_usage), false, decode_usage }
#define HANDLER_ESCAPE          { sizeof(struct wire_escape), true, decode_escape }
#define HANDLER_SESSION_START   { sizeof(struct wire_session), false, decode_session }
#define HANDLER_SESSION_STOP    { sizeof(struct wire_session), false, decode_session }
#define HANDLER_SESSION_PAUSE   { sizeof(struct wire_session), false, decode_session }
#define HANDLER_SESSION_RESUME  { sizeof(struct wire_session), false, decode_session }
#define HANDLER_WORKSPACE_CHANGE { sizeof(struct wire_change), false, decode_workspace_change }
#define HANDLER_WORKSPACE_SCAN   { sizeof(struct wire_scan), false, decode_workspace_scan }
#define HANDLER_SESSION_SNAPSHOT { sizeof(struct wire_snapshot), true, decode_snapshot }
#define HANDLER_SESSION_RESTORE  { sizeof(struct wire_snapshot), true, decode_snapshot }
/* Made in user space from other events. */
#define HANDLER_PACKAGE_INSTALL { 0 }
#define HANDLER_RULE_ALERT      { 0 }
#define HANDLER_ACTION          { 0 }
#define HANDLER_APPROVAL        { 0 }
#define HANDLER_GAP             { 0 }
#define HANDLER_AUDIT_START     { 0 }
#define HANDLER_AUDIT_STOP      { 0 }
#define HANDLER_AUDIT_DEGRADED  { 0 }
#define HANDLER_AUDIT_RULES     { 0 }
#define HANDLER_REVIEW          { 0 }
#define HANDLER_TERMINAL        { 0 }
/* clang-format on */

#define HANDLER_ROW(id, name, text, family) HANDLER_##name,
static const struct handler handlers[] = { WIRE_KINDS(HANDLER_ROW) }; /* as event_kinds[] */

static const char *const parts[] = {
	[GVISOR_CLI] = "cli",
	[GVISOR_GOFER] = "gofer",
	[GVISOR_SENTRY] = "sentry",
	[GVISOR_STUB] = "stub",
};

static const char *const vantages[] = {
	[WIRE_V_KERNEL] = "kernel",
	[WIRE_V_GUEST] = "guest",
	[WIRE_V_RUNTIME] = "runtime",
	[WIRE_V_AGENT] = "agent",
};

struct str decode_bytes(struct decode_ctx *c, struct wire_str s)
{
	if (s.len == 0)
		return (struct str){ 0 };
	if (s.off < c->fixed || (size_t)s.off + s.len > c->len) {
		c->decoder->stats.bad_string++;
		c->cut = true;
		return (struct str){ 0 };
	}
	return (struct str){ (const char *)c->rec + s.off, s.len };
}

struct str decode_copy(struct decode_ctx *c, struct str bytes)
{
	struct str s;

	if (!bytes.p)
		return (struct str){ 0 };
	s = arena_strndup(c->ev->arena, bytes.p, bytes.n);
	if (!s.p)
		c->no_memory = true;
	return s;
}

struct str decode_string(struct decode_ctx *c, struct wire_str s)
{
	struct str bytes = decode_bytes(c, s);

	bytes.n = bytes.p ? strnlen(bytes.p, bytes.n) : 0;
	return bytes.n ? decode_copy(c, bytes) : (struct str){ 0 };
}

void decode_set_string(struct decode_ctx *c, enum field_id f, struct wire_str s)
{
	event_set_str(c->ev, f, decode_string(c, s));
}

void decode_set_words(struct decode_ctx *c, enum field_id f, struct str words)
{
	struct str all, *v;
	size_t count = 0, n = 0;

	if (!words.p)
		return;
	for (const char *p = words.p, *end = p + words.n; p < end; count++) {
		const char *nul = memchr(p, 0, (size_t)(end - p));

		p = nul ? nul + 1 : end;
	}
	if (count > WORDS_MAX) {
		count = WORDS_MAX;
		c->cut = true;
	}
	all = decode_copy(c, words); /* its last word is ended by the copy's own NUL */
	v = arena_alloc(c->ev->arena, count * sizeof(*v));
	if (!all.p || !v) {
		c->no_memory = true;
		return;
	}
	for (const char *p = all.p, *end = p + all.n; n < count; n++) {
		size_t k = strnlen(p, (size_t)(end - p));

		v[n] = (struct str){ p, k };
		p += k + 1;
	}
	event_set_list(c->ev, f, v, n);
}

void decode_set_comm(struct decode_ctx *c, enum field_id f, const char comm[16])
{
	size_t n = strnlen(comm, 16);

	if (n)
		event_set_str(c->ev, f, decode_copy(c, (struct str){ comm, n }));
}

void decode_set_dev(struct decode_ctx *c, enum field_id f, uint32_t dev)
{
	char text[24], *end = json_digits(text, dev >> 20);

	*end++ = ':';
	end = json_digits(end, dev & 0xfffff);
	event_set_str(c->ev, f, decode_copy(c, (struct str){ text, (size_t)(end - text) }));
}

void decode_degrade(struct decode_ctx *c, const char *what)
{
	size_t n = event_has(c->ev, F_DEGRADED) ? c->ev->v[F_DEGRADED].list.n : 0;
	struct str *v = arena_alloc(c->ev->arena, (n + 1) * sizeof(*v));

	if (!v) {
		c->no_memory = true;
		return;
	}
	if (n)
		memcpy(v, c->ev->v[F_DEGRADED].list.v, n * sizeof(*v));
	v[n] = str_from(what);
	event_set_list(c->ev, F_DEGRADED, v, n + 1);
}

static void decode_outcome(struct decode_ctx *c, const struct wire_hdr *h)
{
	const char *outcome = "success", *name;
	int err = h->ret < 0 && h->ret >= -4095 ? -h->ret : 0;

	if (err == EPERM || err == EACCES || h->flags & WIRE_F_DENIED)
		outcome = "denied";
	else if (err == EINPROGRESS)
		outcome = "pending";
	else if (err)
		outcome = "failure";
	event_set_strz(c->ev, F_OUTCOME, outcome);
	if (!err)
		return;
	name = name_errno(err);
	if (name)
		event_set_strz(c->ev, F_ERRNO, name);
	else
		event_set_str(c->ev, F_ERRNO, arena_printf(c->ev->arena, "E%d", err));
}

static void decode_syscall(struct decode_ctx *c, const struct wire_hdr *h)
{
	const char *name = name_syscall(h->nr);

	if (h->flags & WIRE_F_IOURING)
		name = "io_uring";
	if (name)
		event_set_strz(c->ev, F_SYSCALL, name);
	else if (h->nr != WIRE_NR_NONE)
		event_set_str(c->ev, F_SYSCALL, arena_printf(c->ev->arena, "syscall_%u", h->nr));
}

static void decode_header(struct decode_ctx *c, uint32_t family)
{
	const struct wire_hdr *h = &c->ev->hdr;
	struct event *ev = c->ev;
	unsigned part;

	event_set_u64(ev, F_MONO, h->ts);
	if (h->vantage < ARRAY_SIZE(vantages))
		event_set_strz(ev, F_VANTAGE, vantages[h->vantage]);
	if (!(family & FAM_KERNEL))
		return;
	decode_syscall(c, h);
	if (h->flags & WIRE_F_TOCTOU)
		event_set_bool(ev, F_TOCTOU, true);
	if (h->flags & WIRE_F_READ_FAULT)
		decode_degrade(c, "user_string");
	if (h->enforced && h->flags & (WIRE_F_DENIED | WIRE_F_KILLED)) {
		event_set_strz(ev, F_ENFORCE_VERDICT, h->flags & WIRE_F_KILLED ? "kill" : "deny");
		event_set_u64(ev, F_ENFORCE_ENTRY, h->enforced);
	}
	if (h->tgid == 0) /* a packet or an alarm that belongs to no process we know */
		return;
	event_set_u64(ev, F_PROC_PID, h->tgid);
	event_set_u64(ev, F_PROC_TID, h->tid);
	event_set_u64(ev, F_PROC_NSPID, h->nspid);
	event_set_u64(ev, F_PROC_PPID, h->ppid);
	event_set_u64(ev, F_PROC_UID, h->uid);
	event_set_u64(ev, F_PROC_GID, h->gid);
	event_set_u64(ev, F_PROC_START, h->start);
	decode_set_comm(c, F_PROC_COMM, h->comm);
	if (h->flags & WIRE_F_RUNTIME)
		event_set_bool(ev, F_PROC_RUNTIME, true);
	part = (h->flags & WIRE_F_PART) >> WIRE_PART_SHIFT;
	if (part < ARRAY_SIZE(parts) && parts[part])
		event_set_strz(ev, F_PROC_PART, parts[part]);
}

static bool is_dns_stream(const struct wire_hdr *h, const void *rec, struct wire_dns *ret)
{
	if (h->kind != WIRE_DNS_QUERY && h->kind != WIRE_DNS_ANSWER)
		return false;
	memcpy(ret, rec, sizeof(*ret));
	return ret->proto == IPPROTO_TCP;
}

int decoder_more(struct decoder *d, struct arena *arena, struct event *ev)
{
	struct decode_ctx c = { .decoder = d, .ev = ev };
	struct dns_message m;

	if (!d->more)
		return 0;
	d->more = dns_stream_next(&d->dns, &m);
	d->stats.dns_lost = d->dns.lost;
	if (!d->more)
		return 0;
	event_init(ev, m.w.h.kind, arena);
	ev->hdr = m.w.h;
	decode_header(&c, FAM_DNS);
	decode_dns_message(&c, &m);
	return c.no_memory ? -ENOMEM : 1;
}

/* A piece of a DNS stream. The event is that of the first message it completes. */
static int feed_stream(struct decoder *d, struct decode_ctx *c, const struct wire_dns *w,
		       struct arena *arena)
{
	int r = dns_stream_feed(&d->dns, w, decode_bytes(c, w->data));

	if (r < 0)
		return r;
	d->more = true;
	return decoder_more(d, arena, c->ev);
}

int decoder_feed(struct decoder *d, const void *rec, size_t len, struct arena *arena,
		 struct event *ev)
{
	struct decode_ctx c = { .decoder = d, .ev = ev, .rec = rec };
	const struct kind_def *kind;
	const struct handler *handler;
	struct wire_dns dns;
	struct wire_hdr h;

	d->stats.records++;
	if (len < sizeof(h))
		goto bad_size;
	memcpy(&h, rec, sizeof(h));
	if (h.len > len || h.len < sizeof(h))
		goto bad_size;
	if (h.kind == WIRE_CHUNK)
		return decoder_keep_chunk(d, rec, h.len);

	kind = event_kind_by_id(h.kind);
	handler = kind ? &handlers[kind - event_kinds] : NULL;
	if (!handler || !handler->fn) {
		d->stats.bad_kind++;
		return 0;
	}
	if (h.len < handler->size)
		goto bad_size;

	c.len = h.len;
	c.fixed = handler->size;
	c.cut = h.flags & WIRE_F_TRUNC;
	if (is_dns_stream(&h, rec, &dns))
		return feed_stream(d, &c, &dns, arena);
	event_init(ev, h.kind, arena);
	ev->hdr = h;
	decode_header(&c, kind->family);
	if (handler->outcome)
		decode_outcome(&c, &h);
	handler->fn(&c);
	if (h.kind == WIRE_NET_CLOSE) {
		dns_stream_close(&d->dns, h.sandbox, event_u64(ev, F_NET_COOKIE));
		d->more = true;
	}
	if (c.cut && kind->family & FAM_KERNEL)
		event_set_bool(ev, F_TRUNCATED, true);
	return c.no_memory ? -ENOMEM : 1;

bad_size:
	d->stats.bad_size++;
	return 0;
}

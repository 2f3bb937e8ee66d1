// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/seccheck.h"

#include <endian.h>
#include <string.h>

#define HEADER_MIN 8

/* https://protobuf.dev/programming-guides/encoding */
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

#define FIELD_MAX  ((1u << 29) - 1)
#define VARINT_MAX 10

struct reader {
	const char *p, *end;
	enum seccheck_bad bad;
};

struct item {
	uint32_t field;
	enum wire wire;
	uint64_t num;
	struct str bytes;
};

static bool fails(struct reader *r, enum seccheck_bad why)
{
	r->bad = why;
	return false;
}

static __attribute__((noinline)) bool varint_long(struct reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t b;

		if (r->p == r->end)
			return fails(r, SECCHECK_VARINT);
		b = (uint8_t)*r->p++;
		if (shift == 63 && b > 1)
			return fails(r, SECCHECK_VARINT);
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return fails(r, SECCHECK_VARINT);
}

/* Seven bits of each of the eight bytes, moved together. */
static inline uint64_t pack(uint64_t w)
{
	w = (w & 0x007f007f007f007f) | (w & 0x7f007f007f007f00) >> 1;
	w = (w & 0x00003fff00003fff) | (w & 0x3fff00003fff0000) >> 2;
	return (w & 0x000000000fffffff) | (w & 0x0fffffff00000000) >> 4;
}

/* Times have nine bytes, negative numbers ten: where these can be read at once, a number costs no loop. */
static inline bool varint(struct reader *r, uint64_t *ret)
{
	uint64_t w, stop;

	if (r->p != r->end && (uint8_t)*r->p < 0x80) {
		*ret = (uint8_t)*r->p++;
		return true;
	}
	if (r->end - r->p < VARINT_MAX)
		return varint_long(r, ret);
	memcpy(&w, r->p, sizeof(w));
	w = le64toh(w);
	stop = ~w & 0x8080808080808080;
	if (stop) {
		r->p += (__builtin_ctzll(stop) >> 3) + 1;
		*ret = pack(w & (stop ^ (stop - 1)));
		return true;
	}
	*ret = pack(w) | (uint64_t)((uint8_t)r->p[8] & 0x7f) << 56;
	if ((uint8_t)r->p[8] < 0x80) {
		r->p += 9;
		return true;
	}
	if ((uint8_t)r->p[9] > 1)
		return fails(r, SECCHECK_VARINT);
	*ret |= (uint64_t)(uint8_t)r->p[9] << 63;
	r->p += VARINT_MAX;
	return true;
}

static inline bool skip(struct reader *r, size_t n)
{
	if (n > (size_t)(r->end - r->p))
		return fails(r, SECCHECK_LENGTH);
	r->p += n;
	return true;
}

/* false: the end, or r->bad. */
static inline bool next(struct reader *r, struct item *ret)
{
	uint64_t tag, n;

	if (r->p == r->end)
		return false;
	if (!varint(r, &tag))
		return false;
	if (tag >> 3 == 0 || tag >> 3 > FIELD_MAX)
		return fails(r, SECCHECK_FIELD);
	ret->field = (uint32_t)(tag >> 3);
	ret->wire = (enum wire)(tag & 7);
	switch (ret->wire) {
	case VARINT:
		return varint(r, &ret->num);
	case FIXED64:
		return skip(r, 8);
	case FIXED32:
		return skip(r, 4);
	case BYTES:
		if (!varint(r, &n))
			return false;
		ret->bytes = (struct str){ r->p, (size_t)n };
		return n <= SIZE_MAX && skip(r, (size_t)n);
	}
	return fails(r, SECCHECK_WIRE);
}

/* ---- where a field goes ---- */

/* WIDE: 32 bits of the message in a member of 64. */
enum form { UNKNOWN, I32, I64, U32, U64, WIDE, BOOL, TEXT, LIST, SUB };

/* Of a message, by field number. */
#define FIELDS 11

struct slot {
	uint16_t at; /* in struct seccheck_msg */
	uint16_t form;
	const struct slot *sub;
};

#define AT(member)	   ((uint16_t)offsetof(struct seccheck_msg, member))
#define S(n, form, member) [n] = { AT(member), form, NULL }

static const struct slot credentials[FIELDS] = { S(1, U32, c.ruid), S(2, U32, c.euid),
						 S(3, U32, c.suid), S(4, U32, c.rgid),
						 S(5, U32, c.egid), S(6, U32, c.sgid) };

static const struct slot context[FIELDS] = { S(1, I64, c.time_ns),
					     S(2, I32, c.tid),
					     S(3, I64, c.task_start_ns),
					     S(4, I32, c.tgid),
					     S(5, I64, c.group_start_ns),
					     S(6, TEXT, c.container_id),
					     [7] = { AT(c.has_credentials), SUB, credentials },
					     S(8, TEXT, c.cwd),
					     S(9, TEXT, c.process_name) };

static const struct slot exited[FIELDS] = { S(1, I64, result), S(2, I64, error) };

/* Each member is named by the fields of its own message; what all messages of calls begin with: */
#define CONTEXT [1] = { AT(c), SUB, context }
#define CALL	CONTEXT, [2] = { AT(has_exit), SUB, exited }, S(3, U64, sysno)

static const struct slot start[FIELDS] = {
	CONTEXT,	  S(2, TEXT, id),  S(3, TEXT, c.cwd),
	S(4, LIST, argv), S(5, LIST, env), S(6, BOOL, terminal)
};
static const struct slot cloned[FIELDS] = { CONTEXT, S(3, I32, new_tid), S(4, I32, new_tgid),
					    S(5, I64, new_start_ns), S(6, U64, flags) };
static const struct slot ran[FIELDS] = { CONTEXT,	  S(2, TEXT, path), S(3, LIST, argv),
					 S(4, LIST, env), S(5, U32, mode),  S(6, U32, uid),
					 S(7, U32, gid) };
static const struct slot ended[FIELDS] = { CONTEXT, S(2, I32, exit_status) };
static const struct slot raw[FIELDS] = { CONTEXT,
					 [2] = { AT(has_exit), SUB, exited },
					 S(4, U64, sysno),
					 S(5, U64, args[0]),
					 S(6, U64, args[1]),
					 S(7, U64, args[2]),
					 S(8, U64, args[3]),
					 S(9, U64, args[4]),
					 S(10, U64, args[5]) };
static const struct slot opened[FIELDS] = {
	CALL,		S(4, I64, fd), S(5, TEXT, fd_path), S(6, TEXT, path), S(7, WIDE, flags),
	S(8, U32, mode)
};
static const struct slot on_fd[FIELDS] = { CALL, S(4, I64, fd), S(5, TEXT, fd_path) };
static const struct slot moved[FIELDS] = { CALL,
					   S(4, I64, fd),
					   S(5, TEXT, fd_path),
					   S(6, U64, count),
					   S(7, BOOL, has_offset),
					   S(8, I64, offset),
					   S(9, WIDE, flags) };
static const struct slot addressed[FIELDS] = { CALL, S(4, I64, fd), S(5, TEXT, fd_path),
					       S(6, TEXT, address), S(7, WIDE, flags) };
static const struct slot execve_call[FIELDS] = { CALL,
						 S(4, I64, fd),
						 S(5, TEXT, fd_path),
						 S(6, TEXT, path),
						 S(7, LIST, argv),
						 S(8, LIST, env),
						 S(9, WIDE, flags) };
static const struct slot socket_call[FIELDS] = { CALL, S(4, I32, domain), S(5, I32, socktype),
						 S(6, I32, protocol) };
static const struct slot named[FIELDS] = { CALL, S(4, I64, fd), S(5, TEXT, fd_path),
					   S(6, TEXT, path) };
static const struct slot rooted[FIELDS] = { CALL, S(4, TEXT, path) };
static const struct slot set_ids[FIELDS] = { CALL, S(4, U32, ids[0]), S(5, U32, ids[1]),
					     S(6, U32, ids[2]) };
static const struct slot copied[FIELDS] = { CALL, S(4, I64, fd), S(5, I64, new_fd),
					    S(6, TEXT, fd_path), S(7, WIDE, flags) };
static const struct slot any_call[FIELDS] = { CALL };

static const struct slot *const messages[] = {
	[SECCHECK_START] = start,	 [SECCHECK_CLONE] = cloned,
	[SECCHECK_EXEC] = ran,		 [SECCHECK_EXIT_NOTIFY] = ended,
	[SECCHECK_TASK_EXIT] = ended,	 [SECCHECK_RAW] = raw,
	[SECCHECK_OPEN] = opened,	 [SECCHECK_CLOSE] = on_fd,
	[SECCHECK_READ] = moved,	 [SECCHECK_CONNECT] = addressed,
	[SECCHECK_EXECVE] = execve_call, [SECCHECK_SOCKET] = socket_call,
	[SECCHECK_CHDIR] = named,	 [SECCHECK_SETID] = set_ids,
	[SECCHECK_SETRESID] = set_ids,	 [SECCHECK_DUP] = copied,
	[SECCHECK_CHROOT] = rooted,	 [SECCHECK_CLONE_CALL] = any_call,
	[SECCHECK_BIND] = addressed,	 [SECCHECK_ACCEPT] = addressed,
	[SECCHECK_FORK_CALL] = any_call, [SECCHECK_WRITE] = moved,
};

static inline void store_number(struct seccheck_msg *m, const struct slot *s, uint64_t v)
{
	char *to = (char *)m + s->at;

	switch ((enum form)s->form) {
	case I64:
	case U64:
		*(uint64_t *)(void *)to = v;
		break;
	case WIDE:
		*(uint64_t *)(void *)to = (uint32_t)v;
		break;
	case BOOL:
		*(bool *)(void *)to = v != 0;
		break;
	default:
		*(uint32_t *)(void *)to = (uint32_t)v;
	}
}

static inline void store_bytes(struct seccheck_msg *m, const struct slot *s, uint32_t field,
			       struct str bytes)
{
	char *to = (char *)m + s->at;
	struct seccheck_list *l = (struct seccheck_list *)(void *)to;

	if (s->form == TEXT) {
		*(struct str *)(void *)to = bytes;
		return;
	}
	l->field = field;
	l->n++;
	l->bytes += bytes.n;
}

/* Our fields' tags have one byte, and the wire type of their form. False: it is another one, or r->bad. */
static inline bool next_known(struct reader *r, const struct slot *slots, struct item *ret)
{
	uint8_t tag = (uint8_t)*r->p;
	const struct slot *s = &slots[tag >> 3 < FIELDS ? tag >> 3 : 0];

	ret->wire = s->form >= TEXT ? BYTES : VARINT;
	if (s->form == UNKNOWN || (tag & 7) != ret->wire)
		return false;
	r->p++;
	ret->field = tag >> 3;
	if (!varint(r, &ret->num) || s->form < TEXT)
		return !r->bad;
	ret->bytes = (struct str){ r->p, (size_t)ret->num };
	return skip(r, (size_t)ret->num);
}

/* Depth is bounded by the tables: a message, its context, that one's credentials. */
static enum seccheck_bad fill(struct seccheck_msg *m, const struct slot *slots, struct str body)
{
	struct reader r = { body.p, body.p + body.n, SECCHECK_OK };
	struct item i = { 0 };

	while (r.p != r.end) {
		const struct slot *s;
		enum seccheck_bad bad;

		if (!next_known(&r, slots, &i) && (r.bad || !next(&r, &i)))
			break;
		s = &slots[i.field < FIELDS ? i.field : 0];
		if (s->form == UNKNOWN)
			continue;
		if (i.wire != (s->form >= TEXT ? BYTES : VARINT))
			return SECCHECK_WIRE;
		if (s->form < TEXT) {
			store_number(m, s, i.num);
		} else if (s->form < SUB) {
			store_bytes(m, s, i.field, i.bytes);
		} else {
			if (s->at != AT(c))
				*((bool *)m + s->at) = true;
			bad = fill(m, s->sub, i.bytes);
			if (bad)
				return bad;
		}
	}
	return r.bad;
}

static uint32_t le(const char *p, size_t n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | (uint8_t)p[n];
	return v;
}

enum seccheck_bad seccheck_parse(struct str packet, struct seccheck_msg *ret)
{
	const struct slot *slots = NULL;
	size_t header;

	memset(ret, 0, sizeof(*ret));
	if (packet.n < HEADER_MIN || packet.n > SECCHECK_PACKET_MAX)
		return SECCHECK_SHORT;
	header = le(packet.p, 2);
	if (header < HEADER_MIN || header > packet.n)
		return SECCHECK_SHORT;
	ret->type = (uint16_t)le(packet.p + 2, 2);
	ret->dropped = le(packet.p + 4, 4);
	ret->body = (struct str){ packet.p + header, packet.n - header };
	if (ret->type < sizeof(messages) / sizeof(messages[0]))
		slots = messages[ret->type];
	return slots ? fill(ret, slots, ret->body) : SECCHECK_OK;
}

bool seccheck_list_next(const struct seccheck_msg *m, const struct seccheck_list *l, size_t *at,
			struct str *ret)
{
	struct reader r = { m->body.p + *at, m->body.p + m->body.n, SECCHECK_OK };
	struct item i = { 0 };

	while (l->n && next(&r, &i)) {
		if (i.field != l->field)
			continue;
		*at = (size_t)(r.p - m->body.p);
		*ret = i.bytes;
		return true;
	}
	return false;
}

bool seccheck_handshake(struct str packet)
{
	struct reader r = { packet.p, packet.p + packet.n, SECCHECK_OK };
	struct item i = { 0 };
	uint64_t version = 0;

	while (next(&r, &i))
		if (i.field == 1 && i.wire == VARINT)
			version = i.num;
	return !r.bad && version == SECCHECK_VERSION;
}

const char *seccheck_bad_text(enum seccheck_bad bad)
{
	static const char *const texts[] = {
		[SECCHECK_OK] = "nothing",
		[SECCHECK_SHORT] = "no whole header",
		[SECCHECK_VARINT] = "a number that does not end",
		[SECCHECK_LENGTH] = "a length beyond the packet",
		[SECCHECK_WIRE] = "a wrong wire type",
		[SECCHECK_FIELD] = "no field number",
	};

	return bad < SECCHECK_BAD_COUNT ? texts[bad] : "unknown";
}

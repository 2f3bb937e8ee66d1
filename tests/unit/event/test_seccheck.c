// SPDX-License-Identifier: Apache-2.0
/* Our reader of gVisor's packets beside protobuf-c, which reads them by their schema: thousands of packets made by
 * that schema, whole and damaged, must give the same values in both. Then what only ours has: headers, lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seccheck.pb-c.h"
#include "userspace/event/seccheck.h"

/* ---- packets made by a schema ---- */

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

struct bytes {
	uint8_t p[16384];
	size_t n;
};

static void put(struct bytes *b, uint8_t v)
{
	assert_true(b->n < sizeof(b->p));
	b->p[b->n++] = v;
}

static void put_varint(struct bytes *b, uint64_t v)
{
	while (v >= 0x80) {
		put(b, (uint8_t)(v | 0x80));
		v >>= 7;
	}
	put(b, (uint8_t)v);
}

static uint64_t some_number(void)
{
	switch (rnd() % 4) {
	case 0:
		return rnd() % 3;
	case 1:
		return UINT64_MAX - rnd() % 3; /* negative ones take ten bytes */
	case 2:
		return rnd();
	}
	return rnd() & UINT32_MAX;
}

static void put_text(struct bytes *b)
{
	size_t n = rnd() % 8 ? rnd() % 12 : rnd() % 300;

	put_varint(b, n);
	while (n--)
		put(b, (uint8_t)(1 + rnd() % 255));
}

static void put_message(struct bytes *b, const ProtobufCMessageDescriptor *d);

static void put_field(struct bytes *b, const ProtobufCFieldDescriptor *f)
{
	static struct bytes sub[4];
	static int depth;
	struct bytes *s = &sub[depth];
	bool is_text = f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES;

	put_varint(b, f->id << 3 | (is_text || f->type == PROTOBUF_C_TYPE_MESSAGE ? 2 : 0));
	if (is_text) {
		put_text(b);
	} else if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
		s->n = 0;
		depth++;
		put_message(s, f->descriptor);
		depth--;
		put_varint(b, s->n);
		for (size_t i = 0; i < s->n; i++)
			put(b, s->p[i]);
	} else {
		put_varint(b, f->type == PROTOBUF_C_TYPE_BOOL ? rnd() % 2 : some_number());
	}
}

/* In any order, some missing, some twice, some that nobody knows. Not twice: messages within, of which
 * protobuf-c 1.4 keeps the first one's numbers where the schema says the last. */
static void put_message(struct bytes *b, const ProtobufCMessageDescriptor *d)
{
	uint32_t messages = 0;

	for (size_t i = rnd() % (2 * d->n_fields + 2); i > 0; i--) {
		unsigned k = (unsigned)(rnd() % d->n_fields);

		if (d->fields[k].type == PROTOBUF_C_TYPE_MESSAGE && messages & 1u << k)
			continue;
		messages |= 1u << k;
		put_field(b, &d->fields[k]);
		if (rnd() % 8)
			continue;
		put_varint(b, (30 + rnd() % 1000) << 3);
		put_varint(b, rnd());
	}
}

/* ---- what both make of one ---- */

static void same_text(struct str ours, const char *theirs)
{
	size_t n = ours.n ? strnlen(ours.p, ours.n) : 0; /* theirs ends at a NUL */

	assert_int_equal(n, strlen(theirs));
	if (n)
		assert_memory_equal(ours.p, theirs, n);
}

static void same_list(const struct seccheck_msg *m, const struct seccheck_list *l, char **theirs,
		      size_t n)
{
	size_t at = 0, i = 0;
	struct str s;

	assert_int_equal(l->n, n);
	for (; seccheck_list_next(m, l, &at, &s); i++)
		same_text(s, theirs[i]);
	assert_int_equal(i, n);
}

static void same_context(const struct seccheck_msg *m, const Sc__Context *c)
{
	static const Sc__Context none = SC__CONTEXT__INIT;
	static const Sc__Credentials nobody = SC__CREDENTIALS__INIT;
	const Sc__Credentials *cred;

	c = c ? c : &none;
	cred = c->credentials ? c->credentials : &nobody;
	assert_int_equal(m->c.time_ns, c->time_ns);
	assert_int_equal(m->c.tid, c->tid);
	assert_int_equal(m->c.tgid, c->tgid);
	assert_int_equal(m->c.task_start_ns, c->task_start_ns);
	assert_int_equal(m->c.group_start_ns, c->group_start_ns);
	same_text(m->c.container_id, c->container_id);
	same_text(m->c.process_name, c->process_name);
	assert_int_equal(m->c.has_credentials, c->credentials != NULL);
	assert_int_equal(m->c.ruid, cred->ruid);
	assert_int_equal(m->c.euid, cred->euid);
	assert_int_equal(m->c.suid, cred->suid);
	assert_int_equal(m->c.rgid, cred->rgid);
	assert_int_equal(m->c.egid, cred->egid);
	assert_int_equal(m->c.sgid, cred->sgid);
	if (m->type != SECCHECK_START)
		same_text(m->c.cwd, c->cwd);
}

#define SAME(member) assert_int_equal(m->member, t->member)

static void same_exit(const struct seccheck_msg *m, const Sc__Exit *e)
{
	assert_int_equal(m->has_exit, e != NULL);
	assert_int_equal(m->result, e ? e->result : 0);
	assert_int_equal(m->error, e ? e->error : 0);
}

static void same_start(const struct seccheck_msg *m, const Sc__Start *t)
{
	same_context(m, t->c);
	same_text(m->id, t->id);
	same_list(m, &m->argv, t->argv, t->n_argv);
	same_list(m, &m->env, t->env, t->n_env);
	SAME(terminal);
}

static void same_cloned(const struct seccheck_msg *m, const Sc__Cloned *t)
{
	same_context(m, t->c);
	SAME(new_tid);
	SAME(new_tgid);
	SAME(new_start_ns);
	SAME(flags);
}

static void same_ran(const struct seccheck_msg *m, const Sc__Ran *t)
{
	same_context(m, t->c);
	same_text(m->path, t->path);
	same_list(m, &m->argv, t->argv, t->n_argv);
	same_list(m, &m->env, t->env, t->n_env);
	SAME(mode);
	SAME(uid);
	SAME(gid);
}

static void same_ended(const struct seccheck_msg *m, const Sc__Ended *t)
{
	same_context(m, t->c);
	SAME(exit_status);
}

static void same_raw(const struct seccheck_msg *m, const Sc__Raw *t)
{
	same_context(m, t->c);
	same_exit(m, t->exit);
	SAME(sysno);
	assert_int_equal(m->args[0], t->arg1);
	assert_int_equal(m->args[1], t->arg2);
	assert_int_equal(m->args[2], t->arg3);
	assert_int_equal(m->args[3], t->arg4);
	assert_int_equal(m->args[4], t->arg5);
	assert_int_equal(m->args[5], t->arg6);
}

#define SAME_CALL                                  \
	do {                                       \
		same_context(m, t->c);             \
		same_exit(m, t->exit);             \
		SAME(sysno);                       \
		SAME(fd);                          \
		same_text(m->fd_path, t->fd_path); \
	} while (0)

static void same_opened(const struct seccheck_msg *m, const Sc__Opened *t)
{
	SAME_CALL;
	same_text(m->path, t->path);
	SAME(flags);
	SAME(mode);
}

static void same_moved(const struct seccheck_msg *m, const Sc__Moved *t)
{
	SAME_CALL;
	SAME(count);
	SAME(has_offset);
	SAME(offset);
	SAME(flags);
}

static void same_addressed(const struct seccheck_msg *m, const Sc__Addressed *t)
{
	SAME_CALL;
	assert_int_equal(m->address.n, t->address.len);
	if (t->address.len)
		assert_memory_equal(m->address.p, t->address.data, t->address.len);
}

static void same_execve(const struct seccheck_msg *m, const Sc__Execve *t)
{
	SAME_CALL;
	same_text(m->path, t->path);
	same_list(m, &m->argv, t->argv, t->n_argv);
	same_list(m, &m->env, t->env, t->n_env);
	SAME(flags);
}

#define KIND(type, lower)                                                                         \
	{                                                                                         \
		type, &sc__##lower##__descriptor,                                                 \
			(void (*)(const struct seccheck_msg *, const void *))(void *)same_##lower \
	}

static const struct {
	uint16_t type;
	const ProtobufCMessageDescriptor *d;
	void (*same)(const struct seccheck_msg *m, const void *theirs);
} kinds[] = {
	KIND(SECCHECK_START, start),	   KIND(SECCHECK_CLONE, cloned),
	KIND(SECCHECK_EXEC, ran),	   KIND(SECCHECK_TASK_EXIT, ended),
	KIND(SECCHECK_RAW, raw),	   KIND(SECCHECK_OPEN, opened),
	KIND(SECCHECK_READ, moved),	   KIND(SECCHECK_WRITE, moved),
	KIND(SECCHECK_CONNECT, addressed), KIND(SECCHECK_BIND, addressed),
	KIND(SECCHECK_ACCEPT, addressed),  KIND(SECCHECK_EXECVE, execve),
	KIND(SECCHECK_EXIT_NOTIFY, ended),
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Exactly the bytes on the heap, so that a sanitizer sees one too far. */
static char *packet_of(uint16_t type, const struct bytes *body, size_t *ret_n)
{
	char *p = malloc(8 + body->n);
	const uint8_t header[8] = { 8, 0, (uint8_t)type, (uint8_t)(type >> 8), 7, 1 };

	memcpy(p, header, 8);
	memcpy(p + 8, body->p, body->n);
	*ret_n = 8 + body->n;
	return p;
}

static void beside_protobuf_c(bool damage)
{
	static struct bytes b;
	size_t both = 0, refused = 0;

	for (int round = 0; round < 20000; round++) {
		size_t k = (size_t)round % KINDS, n;
		struct seccheck_msg m;
		ProtobufCMessage *theirs;
		enum seccheck_bad bad;
		char *p;

		b.n = 0;
		put_message(&b, kinds[k].d);
		for (size_t i = damage && b.n ? 1 + rnd() % 3 : 0; i > 0; i--)
			b.p[rnd() % b.n] = (uint8_t)rnd();
		if (damage && rnd() % 4 == 0)
			b.n -= rnd() % (b.n + 1);
		p = packet_of(kinds[k].type, &b, &n);
		theirs = protobuf_c_message_unpack(kinds[k].d, NULL, b.n, b.p);
		bad = seccheck_parse((struct str){ p, n }, &m);
		assert_int_equal(m.type, kinds[k].type);
		assert_int_equal(m.dropped, 0x107);
		if (!damage)
			assert_int_equal(bad, SECCHECK_OK);
		if (theirs && !bad) {
			kinds[k].same(&m, theirs);
			both++;
		}
		refused += bad != SECCHECK_OK;
		if (theirs)
			protobuf_c_message_free_unpacked(theirs, NULL);
		free(p);
	}
	assert_true(both > 5000);
	assert_true(!damage || refused > 1000);
}

static void whole_packets(void **state)
{
	(void)state;
	beside_protobuf_c(false);
}

static void damaged_packets(void **state)
{
	(void)state;
	beside_protobuf_c(true);
}

/* ---- ours alone ---- */

static enum seccheck_bad parse(const char *p, size_t n, struct seccheck_msg *m)
{
	char *copy = malloc(n ? n : 1);
	enum seccheck_bad bad;

	memcpy(copy, p, n);
	bad = seccheck_parse((struct str){ copy, n }, m);
	free(copy);
	return bad;
}

#define PARSE(lit, m) parse(lit, sizeof(lit) - 1, m)

static void headers(void **state)
{
	struct seccheck_msg m;

	(void)state;
	assert_int_equal(PARSE("", &m), SECCHECK_SHORT);
	assert_int_equal(PARSE("\x08\0\x05\0\0\0\0", &m), SECCHECK_SHORT);
	assert_int_equal(PARSE("\x07\0\x05\0\0\0\0\0", &m), SECCHECK_SHORT);
	assert_int_equal(PARSE("\x09\0\x05\0\0\0\0\0", &m), SECCHECK_SHORT);
	/* A header that has grown: what is new in it is passed over. */
	assert_int_equal(PARSE("\x0a\0\x05\0\0\0\0\0??\x10\x80\x06", &m), SECCHECK_OK);
	assert_int_equal(m.exit_status, 0x300);
	/* A type that came later. */
	assert_int_equal(PARSE("\x08\0\xff\x0f\x02\0\0\x80\xff\xff", &m), SECCHECK_OK);
	assert_int_equal(m.type, 0xfff);
	assert_int_equal(m.dropped, 0x80000002);
	assert_int_equal(m.body.n, 2);
}

#define TASK_EXIT "\x08\0\x05\0\0\0\0\0"

static void what_is_wrong(void **state)
{
	struct seccheck_msg m;

	(void)state;
	assert_int_equal(PARSE(TASK_EXIT "\x10", &m), SECCHECK_VARINT);
	assert_int_equal(PARSE(TASK_EXIT "\x10\x80\x80", &m), SECCHECK_VARINT);
	assert_int_equal(PARSE(TASK_EXIT "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", &m),
			 SECCHECK_VARINT);
	assert_int_equal(PARSE(TASK_EXIT "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &m),
			 SECCHECK_OK);
	assert_int_equal(m.exit_status, -1);
	assert_int_equal(PARSE(TASK_EXIT "\x0a\x01", &m), SECCHECK_LENGTH);
	/* inside the context, beyond it, though the packet goes on */
	assert_int_equal(PARSE(TASK_EXIT "\x0a\x02\x32\x05"
					 "12345",
			       &m),
			 SECCHECK_LENGTH);
	assert_int_equal(PARSE(TASK_EXIT "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &m),
			 SECCHECK_LENGTH);
	assert_int_equal(PARSE(TASK_EXIT "\x12\x01?", &m), SECCHECK_WIRE); /* a text for a number */
	assert_int_equal(PARSE(TASK_EXIT "\x08\x01", &m),
			 SECCHECK_WIRE);			      /* a number for a message */
	assert_int_equal(PARSE(TASK_EXIT "\x13", &m), SECCHECK_WIRE); /* a group */
	assert_int_equal(PARSE(TASK_EXIT "\x02\x00", &m), SECCHECK_FIELD);
	for (int bad = 0; bad <= SECCHECK_BAD_COUNT; bad++)
		assert_true(strlen(seccheck_bad_text((enum seccheck_bad)bad)) > 0);
}

static void too_long(void **state)
{
	struct seccheck_msg m;
	size_t n = SECCHECK_PACKET_MAX + 1;
	char *p = calloc(1, n);

	(void)state;
	memcpy(p, "\x08\0\xff\x0f", 4);
	assert_int_equal(parse(p, n, &m), SECCHECK_SHORT);
	assert_int_equal(parse(p, n - 1, &m), SECCHECK_OK);
	free(p);
}

/* An exec of what gVisor sends for `sh -c "exit 3"`, two arguments of them empty. */
static void an_exec(void **state)
{
	static const char packet[] =
		"\x08\0\x03\0\0\0\0\0"
		"\x0a\x17\x10\x02\x20\x02\x3a\x08\x08\xe8\x07\x10\xe8\x07\x18\x01\x42\x01/\x4a\x04"
		"init"
		"\x12\x07/bin/sh\x1a\x02sh\x1a\x00\x1a\x02-c\x1a\x00\x22\x03"
		"A=b\x28\xed\x83\x02";
	struct seccheck_msg m;
	struct str s;
	size_t at = 0;

	(void)state;
	assert_int_equal(seccheck_parse((struct str){ packet, sizeof(packet) - 1 }, &m),
			 SECCHECK_OK);
	assert_true(str_eqz(m.path, "/bin/sh"));
	assert_int_equal(m.mode, 0100755);
	assert_int_equal(m.c.tid, 2);
	assert_int_equal(m.c.tgid, 2);
	assert_true(m.c.has_credentials);
	assert_int_equal(m.c.euid, 1000);
	assert_true(str_eqz(m.c.cwd, "/"));
	assert_true(str_eqz(m.c.process_name, "init"));
	assert_int_equal(m.argv.n, 4);
	assert_int_equal(m.argv.bytes, 4);
	assert_int_equal(m.env.n, 1);
	assert_true(seccheck_list_next(&m, &m.argv, &at, &s) && str_eqz(s, "sh"));
	assert_true(seccheck_list_next(&m, &m.argv, &at, &s) && s.n == 0);
	assert_true(seccheck_list_next(&m, &m.argv, &at, &s) && str_eqz(s, "-c"));
	assert_true(seccheck_list_next(&m, &m.argv, &at, &s) && s.n == 0);
	assert_false(seccheck_list_next(&m, &m.argv, &at, &s));
	at = 0;
	assert_true(seccheck_list_next(&m, &m.env, &at, &s) && str_eqz(s, "A=b"));
}

static void handshakes(void **state)
{
	(void)state;
	assert_true(seccheck_handshake(STR("\x08\x01")));
	assert_true(seccheck_handshake(STR("\x08\x01\x12\x01x"))); /* more than we know */
	assert_false(seccheck_handshake(STR("\x08\x00")));
	assert_false(seccheck_handshake(STR("\x08\x02")));
	assert_false(seccheck_handshake(STR("")));
	assert_false(seccheck_handshake(STR("\x08")));
	assert_false(seccheck_handshake(STR("\x0a\x01\x01")));
	assert_false(seccheck_handshake(STR("\x08\x01\x12\x05x")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_packets), cmocka_unit_test(damaged_packets),
		cmocka_unit_test(headers),	 cmocka_unit_test(what_is_wrong),
		cmocka_unit_test(too_long),	 cmocka_unit_test(an_exec),
		cmocka_unit_test(handshakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

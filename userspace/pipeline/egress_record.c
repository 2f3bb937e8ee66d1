// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/egress_record.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "bpf/abi/wire.h"
#include "userspace/base/auto.h"
#include "userspace/pipeline/record.h"

#define ERRNO_MAX 4095 /* include/linux/err.h */

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static struct wire_hdr header(uint32_t sandbox_id, enum wire_kind kind,
			      const struct egress_event *ev)
{
	struct wire_hdr h = record_header(sandbox_id, kind);

	/* The sandbox's act, by none of our processes. */
	h.tgid = h.tid = 0;
	memset(h.comm, 0, sizeof(h.comm));
	h.ret = ev->error > 0 && ev->error <= ERRNO_MAX ? -ev->error : 0;
	h.flags = ev->error == EACCES ? WIRE_F_DENIED : 0;
	return h;
}

static void put_addr(uint8_t to[16], const struct egress_addr *a)
{
	if (a->family == 6) {
		memcpy(to, a->b, 16);
	} else if (a->family == 4) {
		memcpy(to, mapped, sizeof(mapped));
		memcpy(to + 12, a->b, 4);
	}
}

/* name NUL reason NUL asked NUL */
static struct wire_str words(struct buf *out, const struct egress_event *ev)
{
	struct {
		const char *p;
		size_t max;
	} v[] = { { ev->name, sizeof(ev->name) },
		  { ev->reason, sizeof(ev->reason) },
		  { ev->asked, sizeof(ev->asked) } };
	struct wire_str s = { (uint16_t)out->n, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		buf_add(out, v[i].p, strnlen(v[i].p, v[i].max - 1));
		buf_addc(out, 0);
	}
	s.len = (uint16_t)(out->n - s.off);
	return s;
}

static int record_net(struct buf *out, uint32_t sandbox_id, enum wire_kind kind,
		      const struct egress_event *ev)
{
	struct wire_net rec = {
		.h = header(sandbox_id, kind, ev),
		.cookie = ev->cookie,
		.bytes_out = ev->bytes_out,
		.bytes_in = ev->bytes_in,
		.family = AF_INET6, /* of IPv4 the mapped form */
		.type = SOCK_STREAM,
		.proto = IPPROTO_TCP,
		.sport = ev->sport,
		.dport = ev->dport,
		.count = ev->count > 1 ? ev->count : 0,
	};

	put_addr(rec.saddr, &ev->src);
	put_addr(rec.daddr, &ev->dst);
	buf_add(out, &rec, sizeof(rec));
	rec.path = words(out, ev);
	return record_finish(out, &rec, sizeof(rec));
}

static int record_dns(struct buf *out, uint32_t sandbox_id, const struct egress_event *ev)
{
	const uint8_t loopback[16] = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 };
	struct wire_dns rec = {
		.h = header(sandbox_id, WIRE_DNS_ANSWER, ev),
		.family = AF_INET6,
		.dport = 53,
		.proto = IPPROTO_UDP, /* a whole message, however it came */
		.total = MIN(ev->data_n, (uint32_t)sizeof(ev->data)),
	};

	memcpy(rec.daddr, loopback, sizeof(loopback));
	buf_add(out, &rec, sizeof(rec));
	rec.data = record_tail(out, ev->data, rec.total);
	return record_finish(out, &rec, sizeof(rec));
}

static int record_request(struct buf *out, uint32_t sandbox_id, const struct egress_event *ev)
{
	struct wire_request rec = {
		.h = header(sandbox_id, WIRE_NET_REQUEST, ev),
		.bytes_out = ev->bytes_out,
		.bytes_in = ev->bytes_in,
		.dport = ev->dport,
		.status = ev->status,
	};

	buf_add(out, &rec, sizeof(rec));
	rec.name = record_tail(out, ev->name, strnlen(ev->name, sizeof(ev->name)));
	rec.method = record_tail(out, ev->method, strnlen(ev->method, sizeof(ev->method)));
	rec.path = record_tail(out, ev->data, MIN((size_t)ev->data_n, sizeof(ev->data)));
	rec.reason = record_tail(out, ev->reason, strnlen(ev->reason, sizeof(ev->reason)));
	return record_finish(out, &rec, sizeof(rec));
}

int record_egress(struct buf *out, uint32_t sandbox_id, const struct egress_event *ev)
{
	buf_reset(out);
	switch (ev->type) {
	case EGRESS_DNS:
		return record_dns(out, sandbox_id, ev);
	case EGRESS_CONNECT:
		return record_net(out, sandbox_id, WIRE_NET_CONNECT, ev);
	case EGRESS_CLOSE:
		return record_net(out, sandbox_id, WIRE_NET_CLOSE, ev);
	case EGRESS_REQUEST:
		return record_request(out, sandbox_id, ev);
	default:
		return -EINVAL;
	}
}

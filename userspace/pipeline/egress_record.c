// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/egress_record.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "bpf/abi/wire.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define ERRNO_MAX 4095 /* include/linux/err.h */

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static struct wire_hdr header(uint32_t sandbox_id, enum wire_kind kind,
			      const struct egress_event *ev)
{
	return (struct wire_hdr){
		.kind = (uint16_t)kind,
		.ts = clock_boot_ns(),
		.sandbox = sandbox_id,
		.nr = WIRE_NR_NONE,
		.ring = WIRE_RING_NONE,
		.vantage = WIRE_V_RUNTIME,
		.ret = ev->error > 0 && ev->error <= ERRNO_MAX ? -ev->error : 0,
		.flags = ev->error == EACCES ? WIRE_F_DENIED : 0,
	};
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

static struct wire_str tail(struct buf *out, const void *p, size_t n)
{
	struct wire_str s = { (uint16_t)out->n, (uint16_t)n };

	return n && buf_add(out, p, n) == 0 ? s : (struct wire_str){ 0, 0 };
}

static int finish(struct buf *out, struct wire_hdr *h)
{
	while (out->n % 8)
		buf_addc(out, 0);
	h->len = (uint32_t)out->n;
	return out->failed ? -ENOMEM : 0;
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
	int r;

	put_addr(rec.saddr, &ev->src);
	put_addr(rec.daddr, &ev->dst);
	buf_add(out, &rec, sizeof(rec));
	rec.path = words(out, ev);
	r = finish(out, &rec.h);
	if (r == 0)
		memcpy(out->p, &rec, sizeof(rec));
	return r;
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
	int r;

	memcpy(rec.daddr, loopback, sizeof(loopback));
	buf_add(out, &rec, sizeof(rec));
	rec.data = tail(out, ev->data, rec.total);
	r = finish(out, &rec.h);
	if (r == 0)
		memcpy(out->p, &rec, sizeof(rec));
	return r;
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
	int r;

	buf_add(out, &rec, sizeof(rec));
	rec.name = tail(out, ev->name, strnlen(ev->name, sizeof(ev->name)));
	rec.method = tail(out, ev->method, strnlen(ev->method, sizeof(ev->method)));
	rec.path = tail(out, ev->data, MIN((size_t)ev->data_n, sizeof(ev->data)));
	rec.reason = tail(out, ev->reason, strnlen(ev->reason, sizeof(ev->reason)));
	r = finish(out, &rec.h);
	if (r == 0)
		memcpy(out->p, &rec, sizeof(rec));
	return r;
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

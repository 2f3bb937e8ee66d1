// SPDX-License-Identifier: Apache-2.0
/* A sandbox's record, told to a client of the agent while it is written. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/cli/agent_show.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/util.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(rule_filter, rule_filter_free)

#define FOLLOW_MS     50
#define EVENT_MEM_MAX (16u << 20)

static int send_bytes(int client, struct str s)
{
	char packet[1 + AGENT_DATA_MAX];
	int r = 0;

	packet[0] = 'o';
	while (r == 0 && s.n) {
		size_t n = MIN(s.n, (size_t)AGENT_DATA_MAX);

		memcpy(packet + 1, s.p, n);
		r = agent_send(client, packet, 1 + n, -1, 0);
		s.p += n;
		s.n -= n;
	}
	return r;
}

static bool has_gone(int client)
{
	struct pollfd p = { .fd = client, .events = 0 };

	return poll(&p, 1, FOLLOW_MS) == 1 && p.revents & (POLLHUP | POLLERR);
}

static int send_events(int client, int bundle, struct journal_reader *reader,
		       const struct rule_filter *filter, bool follow, struct err *err)
{
	struct arena arena;
	uint64_t seq = 0, last = 0;
	struct str rec;
	int r;

	arena_init(&arena, EVENT_MEM_MAX);
	for (;;) {
		r = journal_reader_next(reader, &rec, &seq, err);
		if (r < 0)
			break;
		if (r == 0) {
			if (!follow || journal_reader_at_end(reader)) {
				r = bundle_check_end(bundle, last, err);
				break;
			}
			if (has_gone(client))
				break;
			continue;
		}
		last = seq;
		r = cli_record_wanted(filter, &arena, rec, err);
		if (r < 0) {
			err_wrap(err, r, "record %llu", (unsigned long long)seq);
			break;
		}
		if (r > 0 && (send_bytes(client, rec) < 0 || send_bytes(client, STR("\n")) < 0)) {
			r = -EPIPE;
			break;
		}
	}
	arena_done(&arena);
	return r;
}

int agent_events(int client, const char *tenant, const struct agent_request *q, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	AUTO(rule_filter) struct rule_filter *filter = NULL;
	auto_close int bundle = -1;
	int r = agent_bundle_unprivileged(&bundle, tenant, q->sandbox, err);

	if (r == 0 && q->filter && rule_filter_new(&filter, str_from(q->filter), err) < 0)
		r = err_wrap(err, -EINVAL, "filter");
	if (r == 0)
		r = journal_reader_open(&reader, bundle, err);
	if (r == 0)
		r = agent_send(client, "{\"opened\":true}", 15, -1, 0);
	if (r == 0)
		r = send_events(client, bundle, reader, filter, q->follow, err);
	return r < 0 ? r : agent_send(client, "{\"exit\":0}", 10, -1, 0);
}

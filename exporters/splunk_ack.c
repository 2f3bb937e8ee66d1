// SPDX-License-Identifier: Apache-2.0
/* The questions go by a client of their own, so that batches need not wait for them. Acknowledgement ids
 * count up per channel from 0; nothing else tells us that a server lost its memory. */
#include "exporters/splunk_ack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

/* Which of our texts stands in the status. */
enum complaint { NONE, ASKING, LATE };

struct splunk_ack {
	char channel[40]; /* UUID */
	struct http_client *client;
	uint64_t timeout_ns;
	struct {
		uint64_t id, deadline;
	} batches[HTTP_BATCHES]; /* of those that s->waiting names */
	uint64_t last_id;
	bool any_id;
	bool ignore; /* the question that runs is about ids of before a restart */
	uint64_t ask_at, ask_ns;
	enum complaint complaint;
};

/* ---- set-up ---- */

static int make_channel(char ret[40], struct err *err)
{
	uint8_t b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return err_set(err, EIO, "no random numbers for a channel");
	b[6] = (b[6] & 0x0f) | 0x40; /* RFC 9562, version 4 */
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(ret, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
	return 0;
}

int splunk_ack_set_up(struct http_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *timeout = exporter_config_get(cfg, "ack-timeout");
	struct splunk_ack *k;
	uint64_t ns;
	bool on;
	int r;

	r = http_yes_no(cfg, "ack", &on, err);
	if (r == 0 && (parse_duration_ns(timeout, &ns) < 0 || ns < NSEC_PER_MSEC))
		r = err_set(err, EINVAL, "property 'ack-timeout': '%s' is no duration such as 60s",
			    timeout);
	if (r < 0 || !on)
		return r;
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(err, ENOMEM, "out of memory");
	s->ack = k;
	s->batch_max = HTTP_WINDOW / HTTP_BATCHES;
	k->timeout_ns = ns;
	r = make_channel(k->channel, err);
	return r < 0 ? r : http_add_header(s, err, "X-Splunk-Request-Channel: %s", k->channel);
}

/* The collector's folder of the URL, a proxy's prefix included; else that of the host. */
int splunk_ack_opened(struct http_sink *s, struct http_options opt, struct err *err)
{
	static const char folder[] = "/services/collector";
	const char *host, *at;
	char url[2200];
	size_t n;

	if (!s->ack)
		return 0;
	host = strstr(opt.url, "://") + 3; /* http_open checked it */
	at = strstr(host, folder);
	n = at ? (size_t)(at - opt.url) : (size_t)(host - opt.url) + strcspn(host, "/?#");
	snprintf(url, sizeof(url), "%.*s%s/ack?channel=%s", (int)n, opt.url, folder,
		 s->ack->channel);
	opt.url = url;
	opt.gzip = false;
	return http_client_new(&s->ack->client, &opt, err);
}

void splunk_ack_close(struct http_sink *s)
{
	if (!s->ack)
		return;
	http_client_free(s->ack->client);
	free(s->ack);
	s->ack = NULL;
}

/* ---- batches ---- */

static void complain(struct http_sink *s, enum complaint what, const char *text)
{
	s->ack->complaint = what;
	http_set_text(s, text);
}

static void no_complaint(struct http_sink *s)
{
	if (s->ack->complaint)
		http_set_text(s, "");
	s->ack->complaint = NONE;
}

static bool is_waiting(const struct http_sink *s, unsigned i)
{
	return s->waiting & 1u << i;
}

/* Ids only grow while a server lives. One that comes a second time would acknowledge an older batch by
 * a younger one's, and the older one is gone with the memory of the server anyway. */
static void check_restart(struct http_sink *s, uint64_t id, unsigned own)
{
	struct splunk_ack *k = s->ack;

	if (k->any_id && id <= k->last_id) {
		for (unsigned i = 0; i < HTTP_BATCHES; i++)
			if (i != own && is_waiting(s, i))
				http_batch_again(s, i);
		k->ignore = http_client_is_busy(k->client);
	}
	k->any_id = true;
	k->last_id = id;
}

enum http_verdict splunk_ack_judge(struct http_sink *s, const struct http_answer *a, char *why)
{
	struct splunk_ack *k = s->ack;
	uint64_t now, id;
	struct str value;
	unsigned i;

	if (!k)
		return HTTP_TAKEN;
	if (!scan_find(a->body, "ackId", &value) || !scan_u64(value, &id)) {
		/* It was indexed all the same, perhaps: do not put thousands there again and again. */
		s->batch_max = 1;
		snprintf(
			why, 256,
			"no ackId in the answer: turn indexer acknowledgement on for this token at "
			"the server, or set ack=no here");
		return HTTP_CONFIG;
	}
	now = clock_ns(CLOCK_MONOTONIC);
	if (!s->waiting) {
		k->ask_ns = ACK_ASK_MIN_NS;
		k->ask_at = now + k->ask_ns;
	}
	i = http_batch_wait(s);
	check_restart(s, id, i);
	k->batches[i].id = id;
	k->batches[i].deadline = now + k->timeout_ns;
	if (!k->complaint)
		http_set_text(s, "");
	return HTTP_WAITS;
}

/* ---- questions ---- */

static void ask(struct http_sink *s)
{
	struct splunk_ack *k = s->ack;
	char text[HTTP_BATCHES * 24 + 16];
	size_t n = 0;

	n += (size_t)snprintf(text, sizeof(text), "{\"acks\":");
	for (unsigned i = 0, first = 1; i < HTTP_BATCHES; i++) {
		if (!is_waiting(s, i))
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%" PRIu64, first ? '[' : ',',
				      k->batches[i].id);
		first = 0;
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "]}");
	k->ignore = false;
	if (http_client_post(k->client, (struct str){ text, n }, NULL) < 0)
		complain(s, ASKING, "out of memory for a request");
}

/* Marks what was indexed. Returns how many batches that were, -EPROTO when it is not such an answer. */
static int read_acks(struct http_sink *s, struct str body)
{
	struct str acks, value;
	char id[24];
	int n = 0;

	if (!scan_find(body, "acks", &acks) || !acks.n || *acks.p != '{')
		return -EPROTO;
	for (unsigned i = 0; i < HTTP_BATCHES; i++) {
		snprintf(id, sizeof(id), "%" PRIu64, s->ack->batches[i].id);
		if (!is_waiting(s, i) || !scan_find(acks, id, &value) || !str_eqz(value, "true"))
			continue;
		http_batch_done(s, i);
		n++;
	}
	return n;
}

static void answered(struct http_sink *s, const struct http_answer *a, uint64_t now)
{
	struct splunk_ack *k = s->ack;
	char why[256];
	int n = 0;

	if (!k->ignore && a->status == 200)
		n = read_acks(s, a->body);
	if (!k->ignore && (a->status != 200 || n < 0)) {
		if (!a->status)
			snprintf(why, sizeof(why), "asking for acknowledgement: %.200s", a->error);
		else
			snprintf(why, sizeof(why),
				 "asking for acknowledgement: HTTP status %d: %.*s", a->status,
				 (int)MIN(a->body.n, (size_t)150), a->body.n ? a->body.p : "");
		complain(s, ASKING, why);
	} else if (n > 0 || k->complaint == ASKING) {
		no_complaint(s);
	}
	k->ask_ns = n > 0 ? ACK_ASK_MIN_NS : MIN(k->ask_ns * 2, ACK_ASK_MAX_NS);
	k->ask_at = now + MAX(k->ask_ns, a->retry_after_ms * NSEC_PER_MSEC);
}

static void check_deadlines(struct http_sink *s, uint64_t now, uint64_t *ret_next)
{
	struct splunk_ack *k = s->ack;
	char text[128];

	for (unsigned i = 0; i < HTTP_BATCHES; i++) {
		if (!is_waiting(s, i))
			continue;
		if (now < k->batches[i].deadline) {
			*ret_next = MIN(*ret_next, k->batches[i].deadline);
			continue;
		}
		http_batch_again(s, i);
		if (k->complaint == ASKING)
			continue; /* that says why */
		snprintf(text, sizeof(text),
			 "not acknowledged by the indexers within %llu ms, sent again",
			 k->timeout_ns / NSEC_PER_MSEC);
		complain(s, LATE, text);
	}
}

uint64_t splunk_ack_tick(struct http_sink *s, uint64_t now)
{
	struct splunk_ack *k = s->ack;
	uint64_t next = UINT64_MAX;
	struct http_answer a;

	if (!k)
		return next;
	if (http_client_poll(k->client, &a))
		answered(s, &a, now);
	check_deadlines(s, now, &next);
	if (!http_client_is_busy(k->client) && s->waiting && now >= k->ask_at)
		ask(s);
	if (http_client_is_busy(k->client))
		return now + HTTP_POLL_MS * NSEC_PER_MSEC;
	return s->waiting ? MIN(next, MAX(k->ask_at, now + NSEC_PER_MSEC)) : next;
}

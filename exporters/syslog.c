// SPDX-License-Identifier: Apache-2.0
/* Syslog (RFC 5424) over TCP or TLS with octet counting (RFC 6587, RFC 5425), a unix datagram socket, or
 * UDP. Syslog has no acknowledgements: over TCP a record counts as safe when the other side's kernel
 * acknowledged its bytes, so that what was in flight when a connection broke is sent again. */
#include "exporters/syslog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/classes.h"
#include "exporters/prefix.h"
#include "exporters/stream.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define SYSLOG_WINDOW	   8192		/* records in flight */
#define SYSLOG_BUFFER	   (256 * 1024) /* bytes waiting for the socket */
#define SYSLOG_RECORD_MAX  (4 << 20)
#define SYSLOG_CONFIRM_MIN 5 /* ms between looks for acknowledgements, growing to the next */
#define SYSLOG_CONFIRM_MAX 200
#define SYSLOG_STALL_NS	   (10 * NSEC_PER_SEC)

struct in_flight {
	uint64_t end;  /* of its bytes, in what was given to the stream */
	uint64_t wire; /* the same in bytes on the wire; 0 = not all are out */
};

struct syslog_sink {
	struct exporter x;
	struct stream *stream;
	struct syslog_header header;
	bool octets; /* octet counting, else newline */
	struct buf out, line;
	uint64_t queued, sent; /* bytes put into `out` / taken by the stream, in this connection */
	struct prefix prefix;
	struct in_flight *flight; /* by ticket, a ring like the prefix's */
	uint64_t unsent;	  /* first ticket whose bytes are not all out */
	uint64_t moved_at;
	int confirm_ms;
	char text[256];
};

static void forget_in_flight(struct syslog_sink *s)
{
	if (prefix_outstanding(&s->prefix))
		s->x.rewind = true;
	prefix_reset(&s->prefix);
	buf_reset(&s->out);
	s->queued = s->sent = 0;
	s->unsent = s->prefix.tail;
}

static void flush(struct syslog_sink *s)
{
	while (s->out.n) {
		ssize_t w = stream_write(s->stream, s->out.p, s->out.n);

		if (w <= 0)
			return; /* not now, or gone: the next drive tells */
		buf_consume(&s->out, (size_t)w);
		s->sent += (uint64_t)w;
		for (; s->unsent < s->prefix.tail; s->unsent++) {
			struct in_flight *f = &s->flight[s->unsent % SYSLOG_WINDOW];

			if (f->end > s->sent)
				break;
			f->wire = stream_written(s->stream);
		}
	}
}

static void confirm(struct syslog_sink *s)
{
	uint64_t confirmed = stream_confirmed(s->stream), now = clock_ns(CLOCK_MONOTONIC);
	bool moved = false;

	while (s->prefix.head < s->unsent) {
		uint64_t ticket = s->prefix.head;

		if (s->flight[ticket % SYSLOG_WINDOW].wire > confirmed)
			break;
		prefix_mark(&s->prefix, ticket);
		moved = true;
	}
	if (moved || !prefix_outstanding(&s->prefix)) {
		s->moved_at = now;
		s->confirm_ms = SYSLOG_CONFIRM_MIN;
		s->text[0] = 0;
		if (moved)
			stream_works(s->stream);
	} else {
		s->confirm_ms = MIN(s->confirm_ms * 2, SYSLOG_CONFIRM_MAX);
		if (now - s->moved_at > SYSLOG_STALL_NS)
			snprintf(s->text, sizeof(s->text),
				 "the other side has taken nothing for %llu s",
				 (unsigned long long)((now - s->moved_at) / NSEC_PER_SEC));
	}
}

static uint64_t syslog_poll(struct exporter *x, int timeout_ms)
{
	struct syslog_sink *s = (struct syslog_sink *)x;

	(void)timeout_ms;
	if (stream_drive(s->stream)) {
		flush(s);
		confirm(s);
		x->poll_in_ms = prefix_outstanding(&s->prefix) ? s->confirm_ms : 0;
	} else {
		forget_in_flight(s);
		x->poll_in_ms = stream_retry_ms(s->stream);
	}
	x->fd = stream_fd(s->stream, &x->fd_events);
	return s->prefix.acked;
}

static enum export_result send_datagram(struct syslog_sink *s, const struct export_record *rec)
{
	ssize_t w = stream_write(s->stream, s->line.p, s->line.n);

	if (w == -EMSGSIZE && stream_kind(s->stream) == STREAM_JOURNALD)
		w = stream_write_file(s->stream, s->line.p, s->line.n);
	if (w == -EMSGSIZE) {
		s->x.why = "larger than a datagram may be";
		return EXPORT_POISON;
	}
	if (w <= 0)
		return EXPORT_FULL;
	s->prefix.acked = rec->seq; /* nobody will ever say more about it */
	stream_works(s->stream);
	return EXPORT_OK;
}

static enum export_result queue_line(struct syslog_sink *s, const struct export_record *rec)
{
	uint64_t ticket, before = s->out.n;

	if (s->octets)
		buf_printf(&s->out, "%zu ", s->line.n);
	buf_add(&s->out, s->line.p, s->line.n);
	if (!s->octets)
		buf_addc(&s->out, '\n');
	if (s->out.failed) {
		s->out.n = before;
		s->out.failed = false;
		return EXPORT_FULL;
	}
	s->queued += s->out.n - before;
	prefix_add(&s->prefix, rec->seq, 1, &ticket); /* the caller saw room */
	s->flight[ticket % SYSLOG_WINDOW] = (struct in_flight){ .end = s->queued };
	return EXPORT_OK;
}

static enum export_result syslog_write(struct exporter *x, const struct export_record *rec)
{
	struct syslog_sink *s = (struct syslog_sink *)x;

	if (*stream_text(s->stream) || x->rewind || prefix_is_full(&s->prefix))
		return EXPORT_FULL;
	if (s->out.n >= SYSLOG_BUFFER)
		flush(s);
	if (s->out.n >= SYSLOG_BUFFER)
		return EXPORT_FULL;
	buf_reset(&s->line);
	if ((stream_kind(s->stream) == STREAM_JOURNALD ? syslog_journald : syslog_format)(
		    &s->line, &s->header, rec) < 0) {
		x->why = "larger than a message may be";
		return EXPORT_POISON;
	}
	return stream_is_datagram(s->stream) ? send_datagram(s, rec) : queue_line(s, rec);
}

static const char *syslog_status(const struct exporter *x)
{
	const struct syslog_sink *s = (const struct syslog_sink *)x;
	const char *text = stream_text(s->stream);

	return *text ? text : s->text;
}

static void syslog_said(const struct exporter *x, char *ret, size_t size)
{
	const struct syslog_sink *s = (const struct syslog_sink *)x;

	snprintf(ret, size, "%s",
		 stream_is_datagram(s->stream)
			 ? "the socket took it; nobody says more in this protocol"
			 : "the receiver's kernel acknowledged it; syslog has no other answer");
}

static void syslog_close(struct exporter *x)
{
	struct syslog_sink *s = (struct syslog_sink *)x;

	stream_free(s->stream);
	prefix_done(&s->prefix);
	free(s->flight);
	buf_done(&s->out);
	buf_done(&s->line);
	free(s);
}

static const char *given(const struct exporter_config *cfg, const char *key)
{
	const char *v = exporter_config_get(cfg, key);

	return v && *v ? v : NULL;
}

static int set_up_header(struct syslog_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *facility = exporter_config_get(cfg, "facility");
	const char *framing = exporter_config_get(cfg, "framing");
	const char *host = given(cfg, "hostname");

	if (syslog_facility(facility, &s->header.facility) < 0)
		return err_set(err, EINVAL,
			       "property 'facility': '%s' is none (local0, auth, audit, 0..23)",
			       facility);
	if (strcmp(framing, "octet") && strcmp(framing, "newline"))
		return err_set(err, EINVAL, "property 'framing': '%s' is not octet or newline",
			       framing);
	s->octets = !strcmp(framing, "octet");
	if (host)
		snprintf(s->header.host, sizeof(s->header.host), "%.255s", host);
	else if (gethostname(s->header.host, sizeof(s->header.host) - 1) < 0)
		s->header.host[0] = 0; /* "-" then */
	snprintf(s->header.app_name, sizeof(s->header.app_name), "%.48s",
		 exporter_config_get(cfg, "app-name"));
	return 0;
}

static int set_up_stream(struct syslog_sink *s, const struct exporter_config *cfg, struct err *err)
{
	const char *verify = exporter_config_get(cfg, "verify");
	struct stream_options opt = {
		.ca = given(cfg, "ca"),
		.cert = given(cfg, "cert"),
		.key = given(cfg, "key"),
		.insecure = !strcmp(verify, "no"),
	};
	char address[512];
	int r;

	if (strcmp(verify, "yes") && strcmp(verify, "no"))
		return err_set(err, EINVAL, "property 'verify': '%s' is not yes or no", verify);
	if ((size_t)snprintf(address, sizeof(address), "%s", exporter_config_get(cfg, "address")) >=
	    sizeof(address))
		return err_set(err, EINVAL, "property 'address': too long");
	r = stream_parse(&opt, address, strncmp(address, "tls:", 4) ? "514" : "6514", err);
	if (r < 0)
		return r;
	if (opt.kind == STREAM_UDP && strcmp(exporter_config_get(cfg, "lossy"), "yes"))
		return err_set(err, EINVAL,
			       "address '%s': UDP may lose messages; lossy=yes accepts that",
			       exporter_config_get(cfg, "address"));
	if (opt.kind != STREAM_TLS && (opt.ca || opt.cert || opt.key || opt.insecure))
		return err_set(err, EINVAL,
			       "properties ca, cert, key and verify need a tls:// address");
	return stream_new(&s->stream, &opt, err);
}

static int syslog_open(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	struct syslog_sink *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->x.class = &syslog_exporter;
	buf_init(&s->out, SYSLOG_BUFFER + SYSLOG_RECORD_MAX + 64);
	buf_init(&s->line, SYSLOG_RECORD_MAX);
	s->flight = calloc(SYSLOG_WINDOW, sizeof(*s->flight));
	r = s->flight ? prefix_init(&s->prefix, SYSLOG_WINDOW) : -ENOMEM;
	if (r < 0)
		err_set(err, r, "out of memory");
	s->unsent = s->prefix.tail;
	if (r == 0)
		r = set_up_header(s, cfg, err);
	if (r == 0)
		r = set_up_stream(s, cfg, err);
	if (r < 0) {
		syslog_close(&s->x);
		return r;
	}
	*ret = &s->x;
	return 0;
}

static const char *warning(const struct exporter_config *cfg)
{
	const char *verify = exporter_config_get(cfg, "verify");

	if (!strncmp(exporter_config_get(cfg, "address"), "udp:", 4))
		return "syslog over UDP loses messages when the network or the receiver is busy, and "
		       "nobody is told; large events do not fit at all";
	if (!strcmp(verify, "no"))
		return "the receiver's certificate is not checked: anybody on the way can read and "
		       "swallow events";
	return NULL;
}

static const struct exporter_property properties[] = {
	{ "address", "ADDRESS", NULL,
	  "tls://HOST:6514, tcp://HOST:514, unix:/dev/log, journald:, or udp://HOST:514", true },
	{ "lossy", "yes|no", "no", "yes: udp:// may lose messages, and nobody will know", false },
	{ "facility", "NAME", "local0", "local0 ... local7, auth, authpriv, audit, ... or 0..23",
	  false },
	{ "app-name", "NAME", "warder", "APP-NAME of the messages", false },
	{ "hostname", "NAME", "", "HOSTNAME of the messages; default: this host's", false },
	{ "framing", "octet|newline", "octet", "how messages are told apart on tcp and tls",
	  false },
	{ "ca", "FILE", "", "CAs to trust (PEM); default: the system's", false },
	{ "cert", "FILE", "", "our certificate (PEM)", false },
	{ "key", "FILE", "", "its key; default: in the same file", false },
	{ "verify", "yes|no", "yes", "check the other side's certificate and name", false },
	{ 0 },
};

const struct exporter_class syslog_exporter = {
	.name = "syslog",
	.doc = "syslog (RFC 5424) over TLS, TCP, a unix socket or UDP",
	.properties = properties,
	.open = syslog_open,
	.write = syslog_write,
	.poll = syslog_poll,
	.status = syslog_status,
	.said = syslog_said,
	.close = syslog_close,
	.warning = warning,
};

// SPDX-License-Identifier: Apache-2.0
#include "exporters/stream.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"

enum state { WAITING, RESOLVING, CONNECTING, HANDSHAKE, UP };

struct stream {
	enum stream_kind kind;
	char *host, *port;
	SSL_CTX *tls;
	SSL *ssl;
	int fd;
	enum state state;
	short want;	      /* events the handshake or a write waits for */
	struct gaicb *lookup; /* outlives us when it cannot be cancelled */
	struct addrinfo *addrs, *next_addr;
	uint64_t written; /* without TLS; with it the BIO counts */
	uint64_t heard;	  /* bytes that the other side said in this connection */
	uint64_t deadline, retry_at, retry_ns;
	char text[256];
};

static void set_text(struct stream *s, const char *what, const char *why)
{
	snprintf(s->text, sizeof(s->text), "%.20s%s%.80s%s%.10s: %.120s", what, *what ? " " : "",
		 s->host, s->port ? ":" : "", s->port ? s->port : "", why);
}

static const char *tls_why(void)
{
	static __thread char text[160];
	unsigned long code = ERR_get_error();

	if (!code)
		return "the other side closed the connection";
	ERR_error_string_n(code, text, sizeof(text));
	while (ERR_get_error())
		continue;
	return ERR_reason_error_string(code) ? ERR_reason_error_string(code) : text;
}

/* ---- set-up ---- */

int stream_parse(struct stream_options *ret, char *text, const char *default_port, struct err *err)
{
	static const struct {
		const char *prefix;
		enum stream_kind kind;
	} kinds[] = {
		{ "tcp://", STREAM_TCP },	  { "tls://", STREAM_TLS },
		{ "udp://", STREAM_UDP },	  { "unix:", STREAM_UNIX },
		{ "journald:", STREAM_JOURNALD },
	};
	static char journald[] = "/run/systemd/journal/socket";
	char *host = NULL, *port;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)))
			continue;
		ret->kind = kinds[i].kind;
		host = text + strlen(kinds[i].prefix);
	}
	if (host && !*host && ret->kind == STREAM_JOURNALD)
		host = journald;
	if (!host || !*host)
		return err_set(err, EINVAL,
			       "address '%s': expected tcp://HOST:PORT, tls://HOST:PORT, "
			       "udp://HOST:PORT, unix:/PATH or journald:",
			       text);
	if (ret->kind == STREAM_UNIX || ret->kind == STREAM_JOURNALD) {
		ret->host = strncmp(host, "//", 2) ? host : host + 2;
		ret->port = NULL;
		if (strlen(ret->host) >= sizeof(((struct sockaddr_un *)0)->sun_path))
			return err_set(err, ENAMETOOLONG, "socket path '%s' is too long",
				       ret->host);
		return 0;
	}
	port = strrchr(host, ':');
	if (*host == '[') { /* [v6]:port */
		char *close = strchr(host, ']');

		if (!close)
			return err_set(err, EINVAL, "address '%s': ']' is missing", text);
		port = close[1] == ':' ? close + 1 : NULL;
		*close = 0;
		host++;
	}
	if (port)
		*port++ = 0;
	ret->host = host;
	ret->port = port && *port ? port : default_port;
	/* getaddrinfo would take 65536 for 0 and send to a stranger; a service's name is fine, and 0 is for who
	 * listens (metrics) */
	if (ret->port && (ret->port[0] == '-' || (isdigit((unsigned char)ret->port[0]) &&
						  strtoul(ret->port, NULL, 10) > 65535)))
		return err_set(err, EINVAL, "address '%s': '%s' is no port", text, ret->port);
	return 0;
}

/* Whom we believe, and who we are, nobody else may say. */
static int check_pem(const char *path, const char *what, struct err *err)
{
	auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	int r;

	if (fd < 0) /* OpenSSL has the words for it */
		return 0;
	r = file_trusted(fd, path, err);
	return r < 0 ? err_wrap(err, r, "%s", what) : 0;
}

static int tls_new(struct stream *s, const struct stream_options *opt, struct err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	int r;

	s->tls = ctx;
	r = check_pem(opt->ca, "CA file", err);
	if (r == 0)
		r = check_pem(opt->cert, "certificate", err);
	if (r == 0)
		r = check_pem(opt->key, "key", err);
	if (r < 0)
		return r;
	if (!ctx)
		return err_set(err, ENOMEM, "TLS: %s", tls_why());
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, opt->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	if (opt->ca ? SSL_CTX_load_verify_locations(ctx, opt->ca, NULL) != 1
		    : SSL_CTX_set_default_verify_paths(ctx) != 1)
		return err_set(err, EINVAL, "CA file '%s': %s", opt->ca ? opt->ca : "(system)",
			       tls_why());
	if (opt->cert && SSL_CTX_use_certificate_chain_file(ctx, opt->cert) != 1)
		return err_set(err, EINVAL, "certificate '%s': %s", opt->cert, tls_why());
	if (opt->cert && SSL_CTX_use_PrivateKey_file(ctx, opt->key ? opt->key : opt->cert,
						     SSL_FILETYPE_PEM) != 1)
		return err_set(err, EINVAL, "key '%s': %s", opt->key ? opt->key : opt->cert,
			       tls_why());
	return 0;
}

int stream_new(struct stream **ret, const struct stream_options *opt, struct err *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->kind = opt->kind;
	s->fd = -1;
	s->host = strdup(opt->host);
	s->port = opt->port ? strdup(opt->port) : NULL;
	if (!s->host || (opt->port && !s->port))
		r = err_set(err, ENOMEM, "out of memory");
	if (r == 0 && opt->kind == STREAM_TLS)
		r = tls_new(s, opt, err);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	set_text(s, "connecting to", "not yet connected");
	*ret = s;
	return 0;
}

static void free_lookup(struct stream *s)
{
	if (!s->lookup)
		return;
	if (gai_cancel(s->lookup) == EAI_NOTCANCELED && gai_error(s->lookup) == EAI_INPROGRESS) {
		s->lookup = NULL; /* a thread still writes to it: leave it the few bytes */
		return;
	}
	if (s->lookup->ar_result)
		freeaddrinfo(s->lookup->ar_result);
	free((void *)s->lookup->ar_request);
	free((void *)s->lookup->ar_name);
	free((void *)s->lookup->ar_service);
	free(s->lookup);
	s->lookup = NULL;
}

static void close_socket(struct stream *s)
{
	if (s->ssl) {
		if (s->state == UP)
			SSL_shutdown(s->ssl);
		SSL_free(s->ssl);
		s->ssl = NULL;
		ERR_clear_error();
	}
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->want = 0;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	close_socket(s);
	free_lookup(s);
	if (s->addrs)
		freeaddrinfo(s->addrs);
	SSL_CTX_free(s->tls);
	free(s->host);
	free(s->port);
	free(s);
}

/* ---- connecting ---- */

/* Come back later; the pause doubles while nothing works. */
static void fail(struct stream *s, const char *what, const char *why)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	set_text(s, what, why);
	close_socket(s);
	s->state = WAITING;
	s->retry_ns = s->retry_ns ? MIN(s->retry_ns * 2, STREAM_RETRY_MAX_NS) : STREAM_RETRY_MIN_NS;
	/* The low bits of the clock spread hosts that lost the same server. */
	s->retry_at = now + s->retry_ns + now % (s->retry_ns / 4);
}

static void came_up(struct stream *s)
{
	s->state = UP;
	s->want = 0;
	s->written = 0;
	s->heard = 0;
	s->text[0] = 0;
}

static void start_lookup(struct stream *s)
{
	struct gaicb *l = calloc(1, sizeof(*l));
	struct addrinfo *hints = calloc(1, sizeof(*hints));

	free_lookup(s);
	if (s->addrs)
		freeaddrinfo(s->addrs);
	s->addrs = s->next_addr = NULL;
	s->lookup = l;
	if (!l || !hints) {
		free(l);
		free(hints);
		s->lookup = NULL;
		fail(s, "", "out of memory");
		return;
	}
	hints->ai_socktype = s->kind == STREAM_UDP ? SOCK_DGRAM : SOCK_STREAM;
	l->ar_request = hints;
	l->ar_name = strdup(s->host);
	l->ar_service = strdup(s->port);
	s->state = RESOLVING;
	if (!l->ar_name || !l->ar_service || getaddrinfo_a(GAI_NOWAIT, &s->lookup, 1, NULL))
		fail(s, "", "cannot look the name up");
}

static void start_tls(struct stream *s)
{
	unsigned char ip[16];
	bool is_ip = inet_pton(AF_INET, s->host, ip) == 1 || inet_pton(AF_INET6, s->host, ip) == 1;
	X509_VERIFY_PARAM *param;

	s->ssl = SSL_new(s->tls);
	if (!s->ssl || SSL_set_fd(s->ssl, s->fd) != 1) {
		fail(s, "TLS with", tls_why());
		return;
	}
	param = SSL_get0_param(s->ssl);
	if (is_ip) {
		X509_VERIFY_PARAM_set1_ip_asc(param, s->host);
	} else {
		X509_VERIFY_PARAM_set1_host(param, s->host, 0);
		SSL_set_tlsext_host_name(s->ssl, s->host);
	}
	SSL_set_connect_state(s->ssl);
	s->state = HANDSHAKE;
	s->want = POLLOUT;
}

static void connected(struct stream *s)
{
	if (s->kind == STREAM_TLS)
		start_tls(s);
	else
		came_up(s);
}

static void set_options(int fd)
{
	const int one = 1;
	const unsigned dead = STREAM_DEAD_MS;

	/* Each only helps; a socket without it works. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof(dead));
}

static void connect_to(struct stream *s, const struct sockaddr *addr, socklen_t n, int family,
		       int type)
{
	s->fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0) {
		fail(s, "", strerror(errno));
		return;
	}
	if (type == SOCK_STREAM && family != AF_UNIX)
		set_options(s->fd);
	s->deadline = clock_ns(CLOCK_MONOTONIC) + STREAM_CONNECT_NS;
	s->state = CONNECTING;
	s->want = POLLOUT;
	if (connect(s->fd, addr, n) == 0)
		connected(s);
	else if (errno != EINPROGRESS)
		fail(s, "", strerror(errno));
}

static void connect_unix(struct stream *s)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	memcpy(un.sun_path, s->host, strlen(s->host)); /* stream_parse checked the length */
	connect_to(s, (struct sockaddr *)&un, sizeof(un), AF_UNIX, SOCK_DGRAM);
}

static void connect_next(struct stream *s)
{
	const struct addrinfo *a = s->next_addr;

	if (!a) {
		start_lookup(s); /* the name may point elsewhere by now */
		return;
	}
	s->next_addr = a->ai_next;
	connect_to(s, a->ai_addr, a->ai_addrlen, a->ai_family, a->ai_socktype);
}

static void check_lookup(struct stream *s)
{
	int r = gai_error(s->lookup);

	if (r == EAI_INPROGRESS)
		return;
	if (r) {
		fail(s, "", gai_strerror(r));
		return;
	}
	s->addrs = s->next_addr = s->lookup->ar_result;
	s->lookup->ar_result = NULL;
	connect_next(s);
}

static void check_connect(struct stream *s)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLOUT };
	socklen_t n = sizeof(int);
	int code = 0;

	if (poll(&pfd, 1, 0) == 0)
		return;
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
		code = errno;
	if (code)
		fail(s, "", strerror(code));
	else
		connected(s);
}

static void check_handshake(struct stream *s)
{
	char why[160];
	long verify;
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	if (r == 1) {
		came_up(s);
		return;
	}
	r = SSL_get_error(s->ssl, r);
	if (r == SSL_ERROR_WANT_READ || r == SSL_ERROR_WANT_WRITE) {
		s->want = r == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		return;
	}
	verify = SSL_get_verify_result(s->ssl);
	if (verify != X509_V_OK)
		snprintf(why, sizeof(why), "certificate refused: %s",
			 X509_verify_cert_error_string(verify));
	else
		snprintf(why, sizeof(why), "%s", tls_why());
	fail(s, "TLS with", why);
}

/* The other side says nothing we care for, but it may be gone. One that talks on and on keeps us busy, and is no
 * receiver of ours. */
static void check_peer(struct stream *s)
{
	char waste[512];
	ssize_t n;

	for (int i = 0; i < 16; i++) {
		if (!stream_is_datagram(s) && s->heard > STREAM_HEARD_MAX + 2 * stream_written(s)) {
			fail(s, "", "it talks without end: that is no receiver");
			return;
		}
		if (s->ssl) {
			ERR_clear_error();
			n = SSL_read(s->ssl, waste, sizeof(waste));
			if (n > 0) {
				s->heard += (uint64_t)n;
				continue;
			}
			n = SSL_get_error(s->ssl, (int)n);
			if (n == SSL_ERROR_WANT_READ || n == SSL_ERROR_WANT_WRITE)
				return;
			fail(s, "", n == SSL_ERROR_ZERO_RETURN ? "connection closed" : tls_why());
			return;
		}
		n = recv(s->fd, waste, sizeof(waste), MSG_DONTWAIT);
		if (n > 0) {
			s->heard += (uint64_t)n;
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n == 0 && stream_is_datagram(s))
			return;
		fail(s, "", n == 0 ? "connection closed" : strerror(errno));
		return;
	}
}

bool stream_drive(struct stream *s)
{
	enum state before;

	do { /* each step may make the next one possible at once */
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		before = s->state;
		switch (s->state) {
		case WAITING:
			if (now < s->retry_at)
				return false;
			if (s->kind == STREAM_UNIX || s->kind == STREAM_JOURNALD)
				connect_unix(s);
			else
				connect_next(s);
			break;
		case RESOLVING:
			check_lookup(s);
			break;
		case CONNECTING:
			check_connect(s);
			break;
		case HANDSHAKE:
			check_handshake(s);
			break;
		case UP:
			check_peer(s);
			break;
		}
		if ((s->state == CONNECTING || s->state == HANDSHAKE) && now > s->deadline)
			fail(s, "", "no answer");
	} while (s->state != before && s->state != WAITING);
	return s->state == UP;
}

/* ---- data ---- */

static ssize_t write_tls(struct stream *s, const void *p, size_t n)
{
	int r;

	ERR_clear_error();
	r = SSL_write(s->ssl, p, (int)MIN(n, (size_t)1 << 20));
	if (r > 0) {
		s->want = 0;
		return r;
	}
	r = SSL_get_error(s->ssl, r);
	if (r == SSL_ERROR_WANT_READ || r == SSL_ERROR_WANT_WRITE) {
		s->want = r == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
		return 0;
	}
	fail(s, "", tls_why());
	return -EPIPE;
}

ssize_t stream_write(struct stream *s, const void *p, size_t n)
{
	ssize_t w;

	if (s->state != UP)
		return -ENOTCONN;
	if (s->ssl)
		return write_tls(s, p, n);
	w = send(s->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (w >= 0) {
		s->want = 0;
		s->written += (uint64_t)w;
		return w;
	}
	switch (errno) {
	case EAGAIN:
	case EINTR:
	case ENOBUFS:
		s->want = POLLOUT;
		return 0;
	case EMSGSIZE:
		return -EMSGSIZE;
	default:
		fail(s, "", strerror(errno));
		return -EPIPE;
	}
}

static int sealed_file(const void *p, size_t n)
{
	auto_close int fd = memfd_create("warder-record", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fd_write_all(fd, p, n) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(fd);
}

ssize_t stream_write_file(struct stream *s, const void *p, size_t n)
{
	auto_close int fd = sealed_file(p, n);
	ssize_t sent;

	if (fd < 0)
		return 0; /* out of memory or descriptors: later */
	if (s->state != UP)
		return -ENOTCONN;
	sent = fd_send(s->fd, NULL, 0, &fd, 1, MSG_DONTWAIT);
	if (sent == 0) {
		s->want = 0;
		return (ssize_t)n;
	}
	if (sent == -EAGAIN || sent == -EINTR || sent == -ENOBUFS) {
		s->want = POLLOUT;
		return 0;
	}
	fail(s, "", strerror((int)-sent));
	return -EPIPE;
}

uint64_t stream_written(const struct stream *s)
{
	return s->ssl ? BIO_number_written(SSL_get_wbio(s->ssl)) : s->written;
}

uint64_t stream_confirmed(const struct stream *s)
{
	uint64_t written = stream_written(s);
	int queued = 0;

	if (s->state != UP)
		return 0;
	if (stream_is_datagram(s) || ioctl(s->fd, SIOCOUTQ, &queued) < 0)
		return written;
	return written - MIN(written, (uint64_t)queued);
}

void stream_works(struct stream *s)
{
	s->retry_ns = 0;
}

int stream_fd(const struct stream *s, short *ret_events)
{
	*ret_events = s->fd < 0 ? 0 : s->state == UP ? s->want | POLLIN : s->want;
	return s->fd;
}

int stream_retry_ms(const struct stream *s)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	switch (s->state) {
	case WAITING:
		return s->retry_at > now ? (int)((s->retry_at - now) / NSEC_PER_MSEC) + 1 : 1;
	case RESOLVING:
		return 10;
	case CONNECTING:
	case HANDSHAKE:
		return 1000; /* for the deadline */
	case UP:
		break;
	}
	return 0;
}

const char *stream_text(const struct stream *s)
{
	return s->text;
}

bool stream_is_datagram(const struct stream *s)
{
	return s->kind == STREAM_UDP || s->kind == STREAM_UNIX || s->kind == STREAM_JOURNALD;
}

enum stream_kind stream_kind(const struct stream *s)
{
	return s->kind;
}

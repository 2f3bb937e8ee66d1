/* SPDX-License-Identifier: Apache-2.0 */
/* The helper from the inside: one thread, one epoll, no privilege. */
#ifndef WARDER_RUNTIME_EGRESS_HELPER_H
#define WARDER_RUNTIME_EGRESS_HELPER_H

#include "runtime/egress/dns.h"
#include "runtime/egress/event.h"
#include "runtime/egress/http.h"
#include "runtime/egress/inside.h"
#include "runtime/egress/policy.h"
#include "userspace/base/clock.h"

#define NAMES_MAX  1024 /* different ones that get an address inside */
#define CANDIDATES 8	/* addresses of one name that are tried */
#define DNS_CONNS  8	/* DNS by TCP, at once */
#define QUESTIONS  64	/* open: waiting for the resolver */
#define TOLD_PAUSE 512	/* events that wait for who takes them: nothing new is decided */
/* Each connection that is open then can end, and end refused. */
#define TOLD_MAX     (2 * TOLD_PAUSE + 2 * EGRESS_CONNECTIONS_MAX)
#define REST_NS	     (50 * NSEC_PER_MSEC) /* after a limit was hit: refusing costs the host, too */
#define OVER_MS	     1000		  /* for the last events */
#define BUF_SIZE     (2 * EGRESS_HEAD_MAX)
#define SNIFF_NS     (5 * NSEC_PER_SEC)
#define DIAL_NS	     (10 * NSEC_PER_SEC) /* each address */
#define DNS_IDLE_NS  (5 * NSEC_PER_SEC)
#define HALF_IDLE_NS (60 * NSEC_PER_SEC) /* one way is closed and nothing comes the other */

/* Tokens that come back with time. */
struct bucket {
	uint64_t at;	 /* CLOCK_MONOTONIC of the last look */
	uint64_t tokens; /* thousandths */
	uint32_t rate, burst;
};

bool bucket_take(struct bucket *b, uint64_t now);

enum conn_state { CONN_SNIFF, CONN_RESOLVE, CONN_DIAL, CONN_PUMP };

/* One way of a connection, by splice. */
struct way {
	int from, to; /* borrowed */
	int pipe[2];  /* -1 until they are needed */
	size_t in_pipe;
	uint64_t bytes;
	bool eof;  /* nothing more comes */
	bool shut; /* and the other side knows */
};

struct conn {
	uint32_t slot;
	enum conn_state state;
	uint8_t check;	/* enum egress_check */
	bool resolving; /* the resolver has a pointer to this */
	bool dead;	/* to be freed when it gives it back */
	bool again;	/* had more to do than its turn allowed */
	bool told;	/* EGRESS_CONNECT was sent */
	int in, out;
	const struct egress_row *row; /* NULL: open */
	const char *name;	      /* NULL: by address */
	struct egress_addr src, dst;
	uint16_t sport, port; /* port: as the sandbox dialled it */
	uint16_t to_port;
	struct egress_addr candidates[CANDIDATES];
	size_t candidates_n, candidate;
	uint64_t deadline; /* CLOCK_MONOTONIC */
	uint64_t cookie;
	/* What was read of the client and not written yet; the first `ok` bytes may go. NULL: spliced. */
	uint8_t *buf;
	size_t have, ok;
	struct egress_http http;
	char asked[EGRESS_TEXT];
	struct way up, down; /* up: to the server */
};

struct dns_conn {
	int fd; /* -1: free */
	uint32_t generation;
	size_t have;
	uint64_t deadline;
	uint8_t buf[2 + EGRESS_DNS_MAX];
};

/* open: a question that the resolver has. */
struct asking {
	struct helper *h;
	bool used;
	struct egress_question q;
	struct sockaddr_in peer;
	int tcp; /* slot of dns_conn; -1 = UDP */
	uint32_t generation;
};

/* Of one sort of refusal: told once a second. */
struct muted {
	const char *reason;
	uint64_t until;
	uint32_t count;
};
#define MUTED_MAX 8

struct helper {
	const struct egress_policy *policy;
	int epoll, control, events, netlink, routes;
	int inside[INSIDE_FDS];
	struct ares_channeldata *ares;
	struct conn **conns; /* limits.connections of them */
	uint32_t conns_n;
	struct dns_conn dns[DNS_CONNS];
	struct asking asking[QUESTIONS];
	char *names[NAMES_MAX];
	size_t names_n;
	struct bucket connect_bucket, dns_bucket;
	struct muted muted[MUTED_MAX];
	uint64_t bytes;
	uint64_t last_turn;	   /* of the sweep over deadlines */
	bool over;		   /* the sandbox is: no new ones */
	bool work;		   /* a connection is `again` */
	uint64_t rest_until;	   /* CLOCK_MONOTONIC; 0 = not resting */
	bool paused;		   /* nothing new until events were taken */
	struct egress_event *told; /* ring */
	size_t told_at, told_n;
};

enum watch {
	WATCH_CONTROL,
	WATCH_EVENTS,
	WATCH_UDP,
	WATCH_TCP,
	WATCH_LISTENER,
	WATCH_DNS,
	WATCH_CONN,
	WATCH_ARES
};

static inline uint64_t watch_of(enum watch what, uint32_t id)
{
	return (uint64_t)what << 32 | id;
}

void helper_pause(struct helper *h, bool pause);
/* A limit was hit: take nothing new for REST_NS. */
void helper_rest(struct helper *h);
int helper_watch(struct helper *h, int fd, uint32_t events, uint64_t what);

/* ---- tell.c ---- */
/* Kept until there is room; while TOLD_PAUSE wait nothing new is decided. */
void tell(struct helper *h, const struct egress_event *ev);
void tell_flush(struct helper *h);
bool tell_is_full(const struct helper *h);
/* Should a refusal for this reason be told now? *ret_count: how many it stands for. `reason` is static. */
bool tell_is_due(struct helper *h, const char *reason, uint64_t now, uint32_t *ret_count);

/* ---- name.c ---- */
/* The address that stands for a name inside, made if need be. False: there are NAMES_MAX. */
bool name_address(struct helper *h, const char *name, struct egress_addr *ret);
const char *name_of(const struct helper *h, const struct egress_addr *a);
bool name_is_fake(const struct egress_addr *a);

/* ---- answer.c: DNS inside ---- */
void answer_udp(struct helper *h);
void answer_accept(struct helper *h);
void answer_tcp(struct helper *h, uint32_t slot);
void answer_sweep(struct helper *h, uint64_t now);

/* ---- resolve.c: DNS outside ---- */
int resolve_init(struct helper *h, struct err *err);
typedef void resolved_fn(void *arg, int error, const struct egress_addr *v, size_t n);
/* Calls `fn` once, perhaps at once. type 0: both, else DNS_TYPE_*. error: ENOENT no such name, EAGAIN else. */
void resolve(struct helper *h, const char *name, uint16_t type, resolved_fn *fn, void *arg);
void resolve_event(struct helper *h, int fd, uint32_t events);
/* Time-outs. Milliseconds until it wants to be called again, at most `max`. */
int resolve_timeout(struct helper *h, int max);
/* Is it an address of this host itself? */
bool resolve_is_own(struct helper *h, const struct egress_addr *a);

/* ---- conn.c ---- */
void conn_accept(struct helper *h);
void conn_event(struct helper *h, uint32_t slot);
void conn_sweep(struct helper *h, uint64_t now);
/* Those that are `again`. */
void conn_work(struct helper *h);
void conn_end(struct helper *h, struct conn *c, int error, const char *reason);

/* ---- pump.c: bytes ---- */
/* 0: goes on; 1: over, both ways; -errno: broken; *why is set when it was refused (-EACCES). */
int pump(struct helper *h, struct conn *c, const char **why);
/* Reads the beginning of what the client sends: 1: it may be dialled; 0: more is needed; -errno as above. */
int pump_sniff(struct helper *h, struct conn *c, const char **why);
void pump_done(struct conn *c);

#endif

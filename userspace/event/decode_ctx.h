/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds' decoders share. A decoder gets a record that is at least as long as its fixed part;
 * strings are fetched through here and nowhere else, so that no offset is trusted. */
#ifndef WARDER_EVENT_DECODE_CTX_H
#define WARDER_EVENT_DECODE_CTX_H

#include "userspace/event/decode.h"
#include "userspace/event/dns_stream.h"

struct decode_ctx {
	struct decoder *decoder;
	struct event *ev;
	const uint8_t *rec; /* not aligned */
	size_t len;	    /* as the header says, at most what was given */
	size_t fixed;	    /* size of the kind's struct: strings lie behind it */
	bool cut;	    /* something was left out: `truncated` */
	bool no_memory;	    /* the arena refused */
};

/* The fixed part, aligned. */
#define DECODE_FIXED(ctx, type)                              \
	({                                                   \
		struct type fixed_;                          \
		memcpy(&fixed_, (ctx)->rec, sizeof(fixed_)); \
		fixed_;                                      \
	})

/* Bytes in the record, not copied; p == NULL when absent or when the piece lies outside (counted). */
struct str decode_bytes(struct decode_ctx *c, struct wire_str s);
/* Copied into the arena. */
struct str decode_copy(struct decode_ctx *c, struct str bytes);
/* Up to the first NUL, copied: for what cannot contain one. */
struct str decode_string(struct decode_ctx *c, struct wire_str s);
void decode_set_string(struct decode_ctx *c, enum field_id f, struct wire_str s);
/* NUL-separated words -> list slot; an empty word stays, an unfinished last one too. */
void decode_set_words(struct decode_ctx *c, enum field_id f, struct str words);
void decode_set_comm(struct decode_ctx *c, enum field_id f, const char comm[16]);
/* "major:minor" of the kernel's dev_t. */
void decode_set_dev(struct decode_ctx *c, enum field_id f, uint32_t dev);
/* Adds one name to `degraded`. */
void decode_degrade(struct decode_ctx *c, const char *what);
/* An address in network order; IPv4-mapped IPv6 comes out as IPv4. False: not an IP family. */
bool decode_ip(uint16_t family, const uint8_t b[16], struct ip_addr *ret);

/* argv or environment of an exec as far as it was sent: `head` is what its record carries, the rest comes
 * from the kept chunks. Of an argv longer than WIRE_ARGS_SENT the last WIRE_ARGS_TAIL bytes follow the
 * first ones without a mark. Shorter than was sent: a piece was lost, and what is behind it is left out. */
struct str decode_area(struct decode_ctx *c, uint64_t exec_id, enum wire_chunk_what what,
		       struct str head, size_t total);
/* Both have been asked for. */
void decode_areas_done(struct decode_ctx *c, uint64_t exec_id);

typedef void decode_fn(struct decode_ctx *c);

decode_fn decode_exec, decode_fork, decode_exit, decode_signal;	    /* kind_proc.c */
decode_fn decode_file_object, decode_file_rename, decode_file_link; /* kind_file.c */
decode_fn decode_mount;
decode_fn decode_net; /* kind_net.c */
decode_fn decode_dns; /* kind_dns.c: a datagram */
void decode_dns_message(struct decode_ctx *c, const struct dns_message *m);
decode_fn decode_oom, decode_limit, decode_usage;	  /* kind_limit.c */
decode_fn decode_escape;				  /* kind_escape.c */
decode_fn decode_session;				  /* kind_session.c */
decode_fn decode_workspace_change, decode_workspace_scan; /* kind_workspace.c */
decode_fn decode_snapshot;
decode_fn decode_request; /* kind_net.c */
/* Of a st_mode: "regular"; NULL. kind_file.c */
const char *file_type_name(uint32_t mode);

#endif

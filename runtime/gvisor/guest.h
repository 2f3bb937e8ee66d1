/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up the view from inside a gVisor sandbox, by root. gVisor itself fails open: of what goes wrong inside, it
 * writes a line into its log and runs the guest unwatched. So each step is looked at from outside:
 *
 *	gvisor_guest_new	 the socket listens; its end goes to the engine, which answers
 *	sandbox_set_guest	 gvisor_guest_view: socket and points for `runsc create`, and the gate behind it, where the
 *				 sandbox's own runsc has connected and the session is really there, or it does not start
 *	gvisor_guest_has_started the first event has come: in time, or the caller ends it */
#ifndef WARDER_RUNTIME_GVISOR_GUEST_H
#define WARDER_RUNTIME_GVISOR_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sandbox.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define GVISOR_GATE_MS	20000 /* connecting is a matter of milliseconds, on a busy machine of many */
#define GVISOR_FIRST_MS 30000

struct gvisor_guest;

/* `dir` is made (0700, ours alone) and holds the socket; it goes with gvisor_guest_free. gate_ms 0 =
 * GVISOR_GATE_MS. */
int gvisor_guest_new(struct gvisor_guest **ret, const char *dir, int gate_ms, struct err *err);
void gvisor_guest_free(struct gvisor_guest *g);
/* Removes directories in `parent` whose makers are dead. Returns the number. */
int gvisor_guest_sweep(const char *parent);
/* For sandbox_set_guest; lives as long as `g`. */
const struct sandbox_guest *gvisor_guest_view(const struct gvisor_guest *g);
/* Who is given what the sentry says of processes that were kept, to be taken in before they go on. */
void gvisor_guest_on_processes(struct gvisor_guest *g, int (*fn)(void *arg, int fd), void *arg);
/* For the engine: struct gvisor_sink_options. Ours are closed by gvisor_guest_given, once it has been forked. */
int gvisor_guest_listen_fd(const struct gvisor_guest *g);
int gvisor_guest_news_fd(const struct gvisor_guest *g);
void gvisor_guest_given(struct gvisor_guest *g);

/* Readable when the engine has told something. -1 without a guest. */
int gvisor_guest_fd(const struct gvisor_guest *g);
/* Has the guest's first event come? Sets *ret_closed when none will come any more. Does not wait. */
bool gvisor_guest_has_started(struct gvisor_guest *g, bool *ret_closed);

/* The same for one that is over: waits while the event may still be on its way. -EPIPE, -ETIMEDOUT: it was not told. */
int gvisor_guest_wait_started(struct gvisor_guest *g, int timeout_ms, struct err *err);
/* Was the end of the guest's first process told? Sets *ret_status as wait(2) has it. Waits while more may come. */
bool gvisor_guest_has_ended(struct gvisor_guest *g, int timeout_ms, int *ret_status);

/* What `runsc trace list` printed: is there one session, with our name and our sink? Sets *ret_dropped to the messages
 * that the sink lost so far. -ENOENT, -EBADMSG. */
int gvisor_trace_list_parse(struct str text, uint64_t *ret_dropped, struct err *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs serve on this kernel, and how they are reached. A system call's end can be reached in
 * several ways (bpf/lib/sysend.bpf.h); the best one that loads, attaches and fires is taken, for each
 * handler by itself. What one kernel refuses must not cost the rest. */
#ifndef WARDER_CAPTURE_HOOKS_H
#define WARDER_CAPTURE_HOOKS_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/base/err.h"

struct capture;
struct ktypes;
struct warder;

/* In the order of preference. */
enum way {
	WAY_MULTI, /* kretprobe.multi */
	WAY_FEXIT, /* fexit on the dispatchers */
	WAY_TRACEPOINT,
	WAY_COUNT,
	WAY_NONE = WAY_COUNT,
};

#define HOOK_LINKS_MAX	 64
#define HOOK_REFUSED_MAX 16
#define HOOK_TEXT_MAX	 160

/* A program that the kernel would not have. */
struct refused {
	char prog[32];
	char why[HOOK_TEXT_MAX];
};

/* Links on many functions: ends of calls that return at once, of calls that may block; names. */
enum { MULTI_CALLS, MULTI_BLOCKING, MULTI_NAMES, MULTI_COUNT };

struct hooks {
	struct ktypes *types;
	bool may[WAY_COUNT];		    /* not excluded by the operator, not found wanting */
	char why[WAY_COUNT][HOOK_TEXT_MAX]; /* why not */
	bool may_prevent;
	char why_no_prevent[HOOK_TEXT_MAX];
	struct refused refused[HOOK_REFUSED_MAX];
	size_t refused_n;
	struct bpf_link *links[HOOK_LINKS_MAX]; /* tracepoints */
	size_t links_n;
	struct bpf_link *slow[HOOK_LINKS_MAX]; /* trampolines */
	size_t slow_n;
	int multi[MULTI_COUNT];
	bool shared; /* other processes have the links, too: to close ours ends nothing */
};

/* WARDER_TIER: auto (or unset), portable, full, full-multi, full-fexit. Anything but auto is not fallen
 * back from: tests then see what is missing. */
int hooks_init(struct hooks *h, struct err *err);

/* Between open (and enforce_prepare) and load: autoload for what was chosen. */
void hooks_choose(struct hooks *h, struct warder *skel);
/* After load: tables, attach, look whether it fires. -EAGAIN: something was found wanting, choose and load
 * anew. */
int hooks_attach(struct hooks *h, struct warder *skel, struct err *err);
/* Remember a program that would not load; -ENOENT if it is one that nothing can go without. */
int hooks_refuse(struct hooks *h, struct warder *skel, const char *prog, const char *why);
/* The i-th program that prevents; NULL: it is not loaded, or there are no more than HOOK_PREVENT_MAX. */
#define HOOK_PREVENT_MAX 15
struct bpf_program *hooks_prevention(const struct hooks *h, const struct warder *skel, size_t i);
/* Fill c->families. */
void hooks_families(const struct hooks *h, struct capture *c);

/* ---- release.c ---- */

/* Detach everything. What the kernel takes long to let go of is left to a process of its own. */
void hooks_detach(struct hooks *h);
void hooks_done(struct hooks *h);
/* Close these links so; ours are to be closed afterwards. */
void hooks_release(int *fds, size_t n);

/* ---- ways.c ---- */

/* What the kernel cannot do at all, without loading the real programs. */
void ways_probe(struct hooks *h);
/* sentences: at the end of sends a kill may have to be carried out. */
int ways_attach_multi(struct hooks *h, int prog_fd, bool sentences, struct err *err);
/* In front of acts on names (NAME_HOOKS). */
int ways_attach_names(struct hooks *h, int prog_fd, struct err *err);
/* Act so that each way that is attached fires. */
void ways_trigger(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A condition's value where only some things are known: true, false or unknown. */
#ifndef WARDER_RULES_PUSH_FOLD_H
#define WARDER_RULES_PUSH_FOLD_H

#include "bpf/abi/maps.h"
#include "rules/internal.h"

enum { TRI_UNKNOWN = -1, TRI_FALSE = 0, TRI_TRUE = 1 };

/* All texts that begin with `text`, but with none of the longer prefixes that the rules name (push.c has
 * them all); exact: this one. */
struct push_text {
	struct str text;
	bool exact;
};

enum push_family { PUSH_ANY, PUSH_IPV4, PUSH_IPV6, PUSH_OTHER };

struct push_net {
	enum push_family family; /* ANY: nothing is known */
	uint8_t bits;
	uint8_t ip[16];
	int port; /* -1 = not known; it stands for its range */
};

/* The file that an exec runs. */
struct push_file {
	bool ino_known, dev_known;
	bool ino_other, dev_other; /* one that no rule names */
	uint64_t ino;
	struct str dev; /* as proc.exe_dev */
};

/* What is known. NULL and 0: nothing. */
struct push_known {
	struct event *ev; /* scratch; its kind is set */
	const struct kind_def *kind;
	const struct push_text *path, *old_path, *exe;
	struct push_net net;
	struct push_file file;
	const char *file_op;
	uint32_t escape;
	const char *unknown; /* out: name of the first field that would have to be known */
};

int push_fold(struct push_known *k, const struct pred *p);
/* Does the check compare the path (old path, executable) with constants; is it about address or port? */
bool push_is_text(const struct atom *a);
/* Is it about the executable of who acts; by constants? */
bool push_is_program(const struct atom *a);
bool push_is_program_text(const struct atom *a);
bool push_is_ino(const struct atom *a);
bool push_is_dev(const struct atom *a);
bool push_is_ip(const struct atom *a);
bool push_is_port(const struct atom *a);

#endif

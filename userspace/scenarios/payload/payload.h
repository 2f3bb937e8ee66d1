/* SPDX-License-Identifier: Apache-2.0 */
/* The program that attacks its sandbox: one static file, a word for each scenario.
 *
 *   payload P05           attempt it; payload P05 twin   the harmless variant
 *   payload twins         all of those, one after the other, each a process of its own
 *   payload -w P05        attempt it, then wait to be killed for it
 *
 * It says what came of each step in a line of its own, and `end` when it got that far:
 *
 *   step blocked EPERM mount tmpfs      refused, or limited
 *   step absent ENOENT open /dev/kvm    there is nothing to attack
 *   step open - open /dev/kvm           it worked: a hole
 *   step did - memfd_create             an act that is allowed, and is to be seen
 *   step cannot EIO copy itself         the attempt itself could not be made
 *
 * Nothing here may do harm where nothing stops it: values are written back as they were, magic numbers are wrong,
 * what is deleted was made for it, loops are bounded. */
#ifndef WARDER_SCENARIOS_PAYLOAD_H
#define WARDER_SCENARIOS_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attempt {
	const char *id;
	void (*run)(void);
	void (*twin)(void); /* NULL: there is none */
};

extern const struct attempt mount_attempts[], kernel_attempts[], file_attempts[], net_attempts[],
	abuse_attempts[];

/* Words behind the scenario's: what the host tells (limits, its own process id). */
extern int words_n;
extern char **words;
/* The i-th of them as a number, or this. */
unsigned long long word_u64(int i, unsigned long long otherwise);

#define STEP_FORMAT __attribute__((format(printf, 2, 3)))

/* Of an attempt: r < 0 with errno is blocked or absent by the error; a refusal of the arguments (EINVAL, EFAULT ...)
 * means that it got past every wall. Returns true when it is a hole. */
bool tried(long r, const char *what, ...) STEP_FORMAT;
/* Of an attempt whose result is more than a return value. */
void blocked(bool is, const char *what, ...) STEP_FORMAT;
/* Of an act that must work: r < 0 with errno means it could not. */
bool did(long r, const char *what, ...) STEP_FORMAT;
/* The attempt comes to nothing for want of the object. */
void absent(const char *what);

/* Open, say what came of it, close. */
void try_open(const char *path, int flags);
/* Open for writing; when that works, write back what is in it. */
void try_rewrite(const char *path);
/* Open to read; with nothing in it, it is masked. */
void try_read(const char *path);
/* Connects, waits at most a second, says what came of it. 0 or -errno. */
int try_connect(const char *ip, int port);
/* A copy of this program. -errno. */
int copy_self(const char *to);
/* Runs it, waits; 128 + signal when one ended it, -errno when it did not start. */
int run(const char *path, char *const argv[]);
/* Runs fn in a child; its value (0 to 255), or 128 + signal. */
int in_child(int (*fn)(void));
bool exists(const char *path);

#endif

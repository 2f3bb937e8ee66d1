// SPDX-License-Identifier: Apache-2.0
/* More than one's share of the machine: P48 to P53. Each stops at a bound of its own, told by the runner, that lies
 * above the sandbox's limit. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "userspace/scenarios/payload/payload.h"

#define TASKS_MAX 4096
#define FDS_MAX	  200000
#define PTYS_MAX  1024
#define CHUNK	  (1 << 20)
#define SPIN_S	  60

static void *stay(void *arg)
{
	pause();
	return arg;
}

/* words[0]: more tasks than there may be */
static void p48(void)
{
	int bound = (int)word_u64(0, TASKS_MAX), n = 0, threads = 0, e = 0;
	static pid_t children[TASKS_MAX];
	pthread_attr_t attr;
	pthread_t t;

	if (bound > TASKS_MAX)
		bound = TASKS_MAX;
	for (; n < bound; n++) {
		children[n] = fork();
		if (children[n] == 0) {
			pause();
			_exit(0);
		}
		if (children[n] < 0) {
			e = errno;
			break;
		}
	}
	errno = e;
	tried(n < bound ? -1 : 0, "fork for ever: %d", n);
	for (int i = 0; i < n; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (; threads < bound; threads++) {
		e = pthread_create(&t, &attr, stay, NULL);
		if (e)
			break;
	}
	errno = e;
	tried(threads < bound ? -1 : 0, "threads for ever: %d", threads);
}

static void p48_twin(void)
{
	int n = 0;

	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		n += pid > 0;
	}
	while (wait(NULL) > 0)
		;
	did(n == 20 ? 0 : -1, "20 children");
}

/* words[0]: more bytes than there may be */
static void p49(void)
{
	unsigned long long bound = word_u64(0, 1ull << 31), have = 0;

	for (; have < bound; have += CHUNK) {
		char *p = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			break;
		memset(p, 0x5a, CHUNK);
	}
	tried(have < bound ? -1 : 0, "%llu MiB of memory", have >> 20);
}

static void p49_twin(void)
{
	char *p = malloc(32 << 20);

	if (p)
		memset(p, 1, 32 << 20);
	did(p ? 0 : -1, "32 MiB of memory");
	free(p);
}

/* words[0]: more than this without a limit is a hole, and not tried */
static void fill(const char *dir)
{
	unsigned long long bound = word_u64(0, 4ull << 30), have = 0;
	char path[64], *block = calloc(1, CHUNK);
	struct statvfs v;
	int fd;

	if (!block || statvfs(dir, &v) < 0) {
		did(-1, "look at %s", dir);
		return;
	}
	if ((unsigned long long)v.f_blocks * v.f_frsize > bound) {
		blocked(false, "fill %s: as large as its file system", dir);
		return;
	}
	snprintf(path, sizeof(path), "%s/.fill", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (; fd >= 0 && have <= bound; have += CHUNK)
		if (write(fd, block, CHUNK) < CHUNK && write(fd, block, CHUNK) < 0)
			break;
	tried(have <= bound ? -1 : 0, "fill %s: %llu MiB", dir, have >> 20);
	close(fd);
	unlink(path);
	free(block);
}

static void p50(void)
{
	signal(SIGXFSZ, SIG_IGN); /* a file that must not grow is an error then */
	fill("/tmp");
	fill("/workspace");
}

static void p50_twin(void)
{
	char block[4096] = { 0 };
	int fd = open("/tmp/small", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), n = 0;

	for (int i = 0; i < 256; i++)
		n += write(fd, block, sizeof(block)) == sizeof(block);
	did(n == 256 ? 0 : -1, "write a MiB");
	close(fd);
	unlink("/tmp/small");
}

static int fds_used(void)
{
	int n = 0;

	while (n < FDS_MAX && socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
		n++;
	tried(n < FDS_MAX ? -1 : 0, "sockets for ever: %d", n);
	return 0;
}

static int ptys_used(void)
{
	int n = 0;

	while (n < PTYS_MAX && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		n++;
	tried(n < PTYS_MAX ? -1 : 0, "terminals for ever: %d", n);
	return 0;
}

static void p51(void)
{
	struct rlimit l;

	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_max += 1000;
	tried(setrlimit(RLIMIT_NOFILE, &l), "raise the limit of files");
	in_child(fds_used);
	in_child(ptys_used);
}

static void p51_twin(void)
{
	int fd[100], n = 0;

	for (int i = 0; i < 100; i++)
		n += (fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
	did(n == 100 ? 0 : -1, "100 descriptors");
	for (int i = 0; i < n; i++)
		close(fd[i]);
}

/* words[0]: so many bytes */
static void p52(void)
{
	unsigned long long bound = word_u64(0, 1ull << 30);
	static char block[CHUNK];

	memset(block, 'x', sizeof(block));
	block[CHUNK - 1] = '\n';
	for (unsigned long long n = 0; n < bound; n += CHUNK)
		if (write(STDOUT_FILENO, block, CHUNK) < 0)
			break;
	blocked(false, "write %llu MiB to stdout", bound >> 20);
}

static void p52_twin(void)
{
	char line[81];

	memset(line, '.', sizeof(line));
	line[80] = '\n';
	for (int i = 0; i < 200; i++)
		if (write(STDOUT_FILENO, line, sizeof(line)) < 0)
			break;
	did(0, "write 16 KiB to stdout");
}

static void p53(void)
{
	struct timespec t, end;

	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	clock_gettime(CLOCK_MONOTONIC, &end);
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while (t.tv_sec < end.tv_sec + SPIN_S);
	blocked(false, "spin for %d seconds", SPIN_S);
}

static void p53_twin(void)
{
	struct timespec t = { .tv_nsec = 1000000 };

	did(nanosleep(&t, NULL), "sleep");
}

const struct attempt abuse_attempts[] = {
	{ "P48", p48, p48_twin },
	{ "P49", p49, p49_twin },
	{ "P50", p50, p50_twin },
	{ "P51", p51, p51_twin },
	{ "P52", p52, p52_twin },
	{ "P53", p53, p53_twin },
	{ 0 },
};

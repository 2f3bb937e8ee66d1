// SPDX-License-Identifier: Apache-2.0
/* One kind of act, N times as fast as it goes: what watching it costs is measured by tests/bench/cost.
 *   load KIND N [ARG]
 * exec: fork, exec of ARG, wait. file: create or truncate, write 64 bytes, close, in directory ARG.
 * rename: to and fro. unlink: create, unlink. tcp: connect over loopback, accept, reset. udp: one query
 * to 127.0.0.1:ARG and its receipt. getppid: the cheapest system call. read: one byte of /dev/zero.
 * pace: open for writing ARG times a second for N acts. calm: exec of ARG every 5 ms.
 * Prints one JSON line: acts, wall and CPU seconds (children included), and the seconds this process was
 * ready but had no CPU: what a busy machine adds. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMES 512 /* distinct files */

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double tv_s(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static double cpu_of(int who)
{
	struct rusage ru;

	getrusage(who, &ru);
	return tv_s(ru.ru_utime) + tv_s(ru.ru_stime);
}

/* Second field of schedstat: ns on a run queue. */
static double waited(void)
{
	unsigned long long ran, waiting = 0;
	FILE *f = fopen("/proc/self/schedstat", "r");

	if (f) {
		if (fscanf(f, "%llu %llu", &ran, &waiting) != 2)
			waiting = 0;
		fclose(f);
	}
	return (double)waiting / 1e9;
}

static void go_to(const char *dir)
{
	if (!dir || (mkdir(dir, 0700) < 0 && errno != EEXIST) || chdir(dir) < 0)
		die(dir ? dir : "no directory given");
}

static void make_file(const char *name)
{
	static const char text[64] = "what a build leaves behind by the thousand";
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
		die(name);
	close(fd);
}

static void load_exec(long n, const char *path)
{
	char *argv[] = { (char *)path, NULL }, *env[] = { NULL };

	while (n--) {
		pid_t pid = fork();
		int status = 0;

		if (pid == 0) {
			execve(path, argv, env);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
			die("exec");
	}
}

static void load_file(long n, const char *dir)
{
	char name[16];

	go_to(dir);
	for (long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%ld", i % NAMES);
		make_file(name);
	}
}

static void load_rename(long n, const char *dir)
{
	go_to(dir);
	make_file("a");
	for (long i = 0; i < n; i++)
		if (i & 1 ? rename("b", "a") : rename("a", "b"))
			die("rename");
}

static void load_unlink(long n, const char *dir)
{
	go_to(dir);
	while (n--) {
		make_file("u");
		if (unlink("u") < 0)
			die("unlink");
	}
}

static void load_tcp(long n, const char *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger reset = { .l_onoff = 1 }; /* no TIME_WAIT: the ports last */
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	(void)arg;
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 64) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		die("listen");
	while (n--) {
		int a, c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (c < 0 || connect(c, (struct sockaddr *)&at, sizeof(at)) < 0)
			die("connect");
		a = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (a < 0)
			die("accept");
		setsockopt(c, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(c);
		close(a);
	}
}

/* A query for the A record of nNNNNNN.example. */
static size_t query(unsigned char *q, long i)
{
	static const unsigned char tail[] = "\7example\0\0\1\0\1";
	char label[9];

	memset(q, 0, 12);
	q[0] = (unsigned char)(i >> 8);
	q[1] = (unsigned char)i;
	q[2] = q[5] = 1;
	snprintf(label, sizeof(label), "\7n%06ld", i % 1000000);
	memcpy(q + 12, label, 8);
	memcpy(q + 20, tail, sizeof(tail) - 1);
	return 20 + sizeof(tail) - 1;
}

static void load_udp(long n, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(port ? port : "53")),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int one = 1;
	unsigned char q[64];

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server, (struct sockaddr *)&at, sizeof(at)) < 0)
		die("bind");
	for (long i = 0; i < n; i++) {
		ssize_t len = (ssize_t)query(q, i);

		if (sendto(client, q, (size_t)len, 0, (struct sockaddr *)&at, sizeof(at)) != len)
			die("sendto");
		if (recv(server, q, sizeof(q), 0) != len)
			die("recv");
	}
}

/* One now and then. */
static void load_calm(long n, const char *path)
{
	const struct timespec rest = { .tv_nsec = 5000000 };

	while (n--) {
		nanosleep(&rest, NULL);
		load_exec(1, path);
	}
}

static void load_getppid(long n, const char *arg)
{
	(void)arg;
	while (n--)
		syscall(SYS_getppid);
}

static void load_read(long n, const char *arg)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char c;

	(void)arg;
	while (n--)
		if (pread(fd, &c, 1, 0) != 1)
			die("pread");
}

static void load_pace(long n, const char *rate)
{
	double each = 1.0 / atof(rate ? rate : "20000"), next = now(CLOCK_MONOTONIC);

	for (; n--; next += each) {
		while (now(CLOCK_MONOTONIC) < next)
			;
		close(open("/dev/shm/warder-pace", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	unlink("/dev/shm/warder-pace");
}

static const struct {
	const char *name;
	void (*run)(long n, const char *arg);
} kinds[] = {
	{ "exec", load_exec },	   { "calm", load_calm },	{ "file", load_file },
	{ "rename", load_rename }, { "unlink", load_unlink },	{ "tcp", load_tcp },
	{ "udp", load_udp },	   { "getppid", load_getppid }, { "read", load_read },
	{ "pace", load_pace },
};

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;

	for (size_t i = 0; n > 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		double wall, cpu, wait;

		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		wait = waited();
		wall = now(CLOCK_MONOTONIC);
		cpu = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
		kinds[i].run(n, argv[3]);
		wall = now(CLOCK_MONOTONIC) - wall;
		cpu = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN) - cpu;
		printf("{\"kind\":\"%s\",\"n\":%ld,\"wall\":%.6f,\"cpu\":%.6f,\"waited\":%.6f}\n",
		       argv[1], n, wall, cpu, waited() - wait);
		return 0;
	}
	fprintf(stderr,
		"usage: load exec|calm|file|rename|unlink|tcp|udp|getppid|read|pace N [ARG]\n");
	return 2;
}

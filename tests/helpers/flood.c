// SPDX-License-Identifier: Apache-2.0
/* Acts in a row, to fill the rings: flood KINDS N [PAUSE_US]. KINDS are letters, done in turn N times:
 *   o open (creates), r rename, d delete, c chmod, s symlink and its delete, m mkdir and rmdir
 *   f fork and exit, x exec of /bin/true, e escape signal (setns on no descriptor), n connect to no unix socket
 *   w open, write, p shared mapping, u datagram, q DNS query to nobody, g signal to itself, a exec with 20 KB of arguments
 *   t TCP: bind, listen, connect, accept, close; v open that fails for lack of descriptors
 * In the current directory. Prints nothing; fails if a call does not do as expected. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[64], other[64];

static void check(int ok, char what)
{
	if (ok)
		return;
	fprintf(stderr, "flood: '%c': %s\n", what, strerror(errno));
	exit(1);
}

static void child(int exec, char *arg)
{
	char *argv[] = { "true", arg, NULL };
	int status;
	pid_t pid = fork();

	check(pid >= 0, 'f');
	if (pid == 0) {
		if (exec)
			execv("/bin/true", argv);
		_exit(exec);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, 'x');
}

static void datagram(uint16_t port, char what)
{
	/* A question for the address of "flood". */
	static const char query[] = "\0\1\1\0\0\1\0\0\0\0\0\0\5flood\0\0\1\0\1";
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(sendto(fd, query, sizeof(query) - 1, 0, (void *)&to, sizeof(to)) > 0, what);
	close(fd);
}

static void stream(char what)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), a;
	struct linger reset = { 1, 0 }; /* leaves no port behind that waits */
	socklen_t n = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(bind(l, (void *)&at, sizeof(at)) == 0 && listen(l, 1) == 0, what);
	check(getsockname(l, (void *)&at, &n) == 0, what);
	check(connect(c, (void *)&at, sizeof(at)) == 0, what);
	a = accept(l, NULL, NULL);
	check(a >= 0 && setsockopt(c, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0, what);
	close(c);
	close(a);
	close(l);
}

static void mapping(char what)
{
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	void *p;

	check(fd >= 0 && ftruncate(fd, 1) == 0, what);
	p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(p != MAP_FAILED, what);
	munmap(p, 1);
	close(fd);
}

static void no_descriptor(char what)
{
	struct rlimit was, none;

	check(getrlimit(RLIMIT_NOFILE, &was) == 0, what);
	none = was;
	none.rlim_cur = 1;
	check(setrlimit(RLIMIT_NOFILE, &none) == 0, what);
	check(open("/dev/null", O_RDONLY) < 0, what);
	check(setrlimit(RLIMIT_NOFILE, &was) == 0, what);
}

static void act(char what)
{
	static char many[20001];
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "nobody" };
	int fd;

	switch (what) {
	case 'o':
		fd = open(name, O_CREAT | O_WRONLY, 0600);
		check(fd >= 0, what);
		close(fd);
		break;
	case 'r':
		check(rename(name, other) == 0 && rename(other, name) == 0, what);
		break;
	case 'd':
		check(unlink(name) == 0, what);
		break;
	case 'c':
		check(chmod(name, 0640) == 0, what);
		break;
	case 's':
		check(symlink("x", other) == 0 && unlink(other) == 0, what);
		break;
	case 'm':
		check(mkdir(other, 0700) == 0 && rmdir(other) == 0, what);
		break;
	case 'f':
		child(0, NULL);
		break;
	case 'x':
		child(1, NULL);
		break;
	case 'e':
		check(setns(-1, 0) < 0, what);
		break;
	case 'n':
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		check(connect(fd, (void *)&sun, sizeof(sun)) < 0, what);
		close(fd);
		break;
	case 'w':
		fd = open(name, O_CREAT | O_WRONLY, 0600);
		check(fd >= 0 && write(fd, "x", 1) == 1, what);
		close(fd);
		break;
	case 'p':
		mapping(what);
		break;
	case 'u':
		datagram(9, what);
		break;
	case 'q':
		datagram(53, what);
		break;
	case 'g':
		signal(SIGTERM, SIG_IGN);
		check(kill(getpid(), SIGTERM) == 0, what);
		break;
	case 'a':
		memset(many, 'a', sizeof(many) - 1);
		child(1, many);
		break;
	case 't':
		stream(what);
		break;
	case 'v':
		no_descriptor(what);
		break;
	default:
		check(0, what);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0, pause_us = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 3)
		return 2;
	snprintf(name, sizeof(name), "flood-%d", getpid());
	snprintf(other, sizeof(other), "flood-%d-other", getpid());
	for (int i = 0; i < n; i++) {
		for (const char *p = argv[1]; *p; p++)
			act(*p);
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	unlink(name);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// libs: -static -no-pie
/* A runsc whose sentry is in the hands of somebody: static, since gVisor's small root has no libraries. What it does is
 * the first word of the payload's command, in the bundle:
 *   good      answers, and says that the payload ended with 7
 *   garbage   answers what is no JSON      refuse   answers that the start has failed
 *   flood     answers without an end       silent   takes the call and never answers
 *   lie       an answer to the wait that says nothing, then its end with 9
 *   close     closes each connection       dies     ends with SIGSYS while the payload runs
 * Who is asked for events of the guest (--pod-init-config) sends them:
 *   good      hello, the start, and the end
 *   nohello   connects and says nothing    badhello  another version
 *   early     hello, and closes            crowd     a thousand connections besides
 *   lengths   heads and fields that are longer than the packet
 *   nested    messages ten thousand deep, numbers without an end
 *   stranger  the start and programs of another container
 *   swamp     twenty thousand messages as fast as they are taken */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char mode[32];

static void read_mode(void)
{
	static char text[1 << 16];
	FILE *f = fopen("/bundle/config.json", "r");
	char *at;

	if (!f)
		exit(3);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	at = strstr(text, "\"args\":[\"");
	if (!at || sscanf(at + strlen("\"args\":[\""), "%31[a-z]", mode) != 1)
		exit(3);
}

static int is(const char *word)
{
	return !strcmp(mode, word);
}

static void say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* ---- the guest's events ---- */

#define CROWD 1000
#define SWAMP 20000

static int sink = -1;

static int dial_sink(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/sink" };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* As gVisor frames it: length of the head, type, messages lost so far. */
static void tell(unsigned char type, const char *body, size_t n)
{
	static unsigned char m[8192];
	const unsigned char head[8] = { 8, 0, type };

	if (sink < 0 || n > sizeof(m) - sizeof(head))
		return;
	memcpy(m, head, sizeof(head));
	memcpy(m + sizeof(head), body, n);
	send(sink, m, sizeof(head) + n, MSG_NOSIGNAL);
}

/* Context: thread 1 of process 1; then the body. Of a start: an id, and one word. */
#define OF_1		 "\x0a\x04\x10\x01\x20\x01"
#define TELL(type, body) tell(type, OF_1 body, sizeof(OF_1 body) - 1)
#define TELL_START	 TELL(1, "\x12\x05other\x22\x04good")

static void tell_nonsense(void)
{
	static char deep[8000];
	static const char head_beyond[] = { 100, 0, 1, 0, 0, 0, 0, 0, 10 };

	if (is("lengths")) {
		send(sink, head_beyond, sizeof(head_beyond), MSG_NOSIGNAL);
		send(sink, head_beyond, 3, MSG_NOSIGNAL);
		TELL(3, "\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f/bin/sh");
		TELL(3, "\x12\x20/bin/sh");
	} else if (is("nested")) {
		for (size_t i = 0; i + 4 <= sizeof(deep); i += 4) /* each holds all that follows */
			memcpy(deep + i, "\x0a\xf0\x3e\x0a", 4);
		tell(3, deep, sizeof(deep));
		memset(deep, 0xff, sizeof(deep));
		tell(3, deep, sizeof(deep));
	} else if (is("stranger")) {
		TELL(3, "\x12\x07/bin/sh\x1a\x02sh");
	}
}

static void tell_start(void)
{
	char b[64];

	sink = dial_sink();
	if (sink < 0)
		exit(6);
	if (is("nohello"))
		return;
	if (is("badhello")) {
		send(sink, "\x08\x09", 2, MSG_NOSIGNAL);
		return;
	}
	if (send(sink, "\x08\x01", 2, MSG_NOSIGNAL) != 2 || recv(sink, b, sizeof(b), 0) != 2)
		exit(7);
	for (int i = 0; is("crowd") && i < CROWD; i++)
		dial_sink();
	if (is("early")) {
		close(sink);
		sink = -1;
	}
}

static void tell_life(void)
{
	TELL_START;
	tell_nonsense();
	for (int i = 0; is("swamp") && i < SWAMP; i++)
		TELL(3, "\x12\x09/bin/true\x1a\x04true");
	TELL(5, "\x10\x80\x0e"); /* its end, with 7 */
}

static void answer(int fd, const char *call)
{
	int wait = strstr(call, "Wait") != NULL, start = strstr(call, "StartRoot") != NULL;

	if (is("close"))
		return;
	if (is("garbage") && start) {
		say(fd, "}}}]]\xff\xfe\\\"");
		return;
	}
	if (is("silent") && start)
		pause();
	while (is("flood") && start)
		if (send(fd, "{\"x\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"y\":[", 50,
			 MSG_NOSIGNAL) < 0)
			return;
	if (start && sink >= 0)
		tell_life();
	if (strstr(call, "ListTraceSessions"))
		say(fd,
		    "{\"success\":true,\"err\":\"\",\"result\":[{\"name\":\"Default\",\"sinks\":[{\"name\":\"remote\","
		    "\"status\":{\"DroppedCount\":0}}]}]}");
	else if (is("refuse") && start)
		say(fd, "{\"success\":false,\"err\":\"no such thing\",\"result\":null}");
	else if (!wait)
		say(fd, "{\"success\":true,\"err\":\"\",\"result\":{}}");
	else if (is("lie"))
		say(fd, "{\"success\":maybe,\"result\":99999999999999999999}");
	else
		say(fd, "{\"success\":true,\"err\":\"\",\"result\":1792}");
	if (wait && is("lie"))
		exit(9);
}

static void serve(int fd)
{
	for (;;) {
		char call[4096];
		int c = accept(fd, NULL, NULL);
		ssize_t n = c < 0 ? -1 : read(c, call, sizeof(call) - 1);

		if (c < 0)
			exit(1);
		call[n > 0 ? n : 0] = 0;
		if (strstr(call, "Wait") && is("dies")) {
			signal(SIGSYS, SIG_DFL);
			raise(SIGSYS);
		}
		answer(c, call);
		close(c);
	}
}

static int create(const char *id, int watched)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), n;
	FILE *f;
	pid_t pid;

	read_mode();
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "runsc-sandbox.%s", id);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a, (socklen_t)(sizeof(a.sun_family) + 1 + (size_t)n)) <
		    0 ||
	    listen(fd, 16) < 0)
		return 4;
	pid = fork();
	if (pid == 0) {
		setsid();
		if (watched)
			tell_start();
		serve(fd);
	}
	f = fopen("/state/pid", "w");
	if (!f)
		return 5;
	fprintf(f, "%d", (int)pid);
	return fclose(f) ? 5 : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int watched = 0;

	if (!strcmp(what, "flags"))
		return puts("  -ignore-cgroups\n  -network value\n  -overlay2 value") < 0;
	if (!strcmp(what, "help"))
		return puts("ptrace") < 0;
	if (!strcmp(what, "--version"))
		return puts("runsc version fake") < 0;
	for (int i = 1; i < argc; i++)
		watched |= !strncmp(argv[i], "--pod-init-config", 17);
	return create(argv[argc - 1], watched);
}

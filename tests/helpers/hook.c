// libs: -lz -lpthread
// SPDX-License-Identifier: Apache-2.0
/* A webhook in bad health, quick enough for tens of thousands of events a second. Takes POSTs of JSON arrays (gzip
 * or not) whose records hold "seq":N and "session":"S<number>" at the top; keeps the next seq of each session and
 * how many came twice or never. Prints its port, then obeys stdin, a line an answer:
 *   sick P     with probability P a request fails: half of them are refused or cut, half are taken without answer
 *   count      {"requests":..,"refused":..,"unanswered":..,"twice":..,"missing":..,"bad":..,"next":[..]}
 * Ends at end of file. `bad`: requests that made no sense. Loopback only. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define SESSIONS_MAX 256
#define BODY_MAX     (64u << 20)
#define HEAD_MAX     16384

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long next[SESSIONS_MAX], requests, refused, unanswered, twice, missing, bad;
static double sick;
static unsigned sessions;
static uint64_t dice = 88172645463325252ull;

static double roll(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (double)(dice >> 11) / (double)(1ull << 53);
}

/* The number behind `key`, moving *p behind it; false when there is none. */
static bool number_behind(const char **p, const char *end, const char *key, unsigned long long *ret)
{
	const char *at = memmem(*p, (size_t)(end - *p), key, strlen(key));

	if (!at)
		return false;
	*ret = strtoull(at + strlen(key), (char **)p, 10);
	return true;
}

/* `body` ends with a NUL. In each record seq comes before session. */
static void take(const char *body, size_t n)
{
	const char *p = body, *end = body + n;
	unsigned long long seq, s;

	while (n && (body[n - 1] == '\n' || body[n - 1] == ' '))
		n--;
	if (n < 2 || body[0] != '[' || body[n - 1] != ']')
		bad++;
	while (number_behind(&p, end, "\"seq\":", &seq)) {
		if (!number_behind(&p, end, "\"session\":\"S", &s) || s >= SESSIONS_MAX) {
			bad++;
			return;
		}
		sessions = s + 1 > sessions ? (unsigned)s + 1 : sessions;
		if (!next[s])
			next[s] = 1;
		if (seq < next[s]) {
			twice++;
			continue;
		}
		missing += seq - next[s];
		next[s] = seq + 1;
	}
}

static char *inflated(const char *in, size_t n, size_t *ret_n)
{
	z_stream z = { .next_in = (Bytef *)in, .avail_in = (uInt)n };
	size_t cap = n * 8 + 65536;
	char *out = malloc(cap + 1);
	int r;

	if (!out || inflateInit2(&z, 15 + 16) != Z_OK)
		abort();
	do {
		if (z.total_out == cap) {
			cap *= 2;
			out = cap > BODY_MAX ? NULL : realloc(out, cap + 1);
			if (!out)
				abort();
		}
		z.next_out = (Bytef *)out + z.total_out;
		z.avail_out = (uInt)(cap - z.total_out);
		r = inflate(&z, Z_NO_FLUSH);
	} while (r == Z_OK);
	*ret_n = z.total_out;
	out[z.total_out] = 0;
	inflateEnd(&z);
	if (r == Z_STREAM_END)
		return out;
	free(out);
	return NULL;
}

/* The answer's status; 0 = cut the connection. */
static int judge(const char *body, size_t n, bool gzip)
{
	char *text = NULL;
	double fate;
	int status;

	if (gzip)
		text = inflated(body, n, &n);
	pthread_mutex_lock(&lock);
	requests++;
	fate = roll();
	if (fate < sick / 2) {
		static const int how[] = { 503, 429, 500, 0 };

		refused++;
		status = how[(int)(roll() * 4)];
	} else {
		if (gzip && !text)
			bad++;
		else
			take(gzip ? text : body, n);
		status = fate < sick ? 0 : 204;
		unanswered += fate < sick;
	}
	pthread_mutex_unlock(&lock);
	free(text);
	return status;
}

static const char *header(const char *head, const char *name)
{
	for (const char *p = head; (p = strstr(p, "\r\n"));) {
		p += 2;
		if (!strncasecmp(p, name, strlen(name)))
			return p + strlen(name);
	}
	return NULL;
}

static bool read_more(int fd, char *p, size_t *n, size_t want)
{
	while (*n < want) {
		ssize_t k = read(fd, p + *n, want - *n);

		if (k <= 0)
			return false;
		*n += (size_t)k;
	}
	return true;
}

/* One request; false when the connection is over. */
static bool serve(int fd)
{
	char head[HEAD_MAX + 1], answer[128], *end = NULL, *body;
	const char *encoding, *length;
	size_t n = 0, got, want;
	bool gzip;
	int status;

	while (!end) {
		ssize_t k = n < HEAD_MAX ? read(fd, head + n, HEAD_MAX - n) : -1;

		if (k <= 0)
			return false;
		n += (size_t)k;
		head[n] = 0;
		end = strstr(head, "\r\n\r\n");
	}
	end[2] = 0;
	length = header(head, "content-length:");
	encoding = header(head, "content-encoding:");
	gzip = encoding && strstr(encoding, "gzip");
	want = length ? strtoull(length, NULL, 10) : 0;
	got = n - (size_t)(end + 4 - head);
	if (!length || want > BODY_MAX || got > want)
		return false;
	body = malloc(want + 1);
	if (!body)
		return false;
	memcpy(body, end + 4, got);
	if (header(head, "expect:") && write(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25) != 25)
		want = SIZE_MAX;
	if (want == SIZE_MAX || !read_more(fd, body, &got, want)) {
		free(body);
		return false;
	}
	body[want] = 0;
	status = judge(body, want, gzip);
	free(body);
	if (!status)
		return false;
	n = (size_t)snprintf(answer, sizeof(answer), "HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n",
			     status);
	return write(fd, answer, n) == (ssize_t)n;
}

static void *connection(void *arg)
{
	int fd = (int)(intptr_t)arg;

	while (serve(fd))
		continue;
	close(fd);
	return NULL;
}

static void *accepter(void *arg)
{
	int listener = (int)(intptr_t)arg;

	for (;;) {
		int fd = accept(listener, NULL, NULL);
		pthread_t t;

		if (fd < 0)
			continue;
		if (pthread_create(&t, NULL, connection, (void *)(intptr_t)fd) == 0)
			pthread_detach(t);
		else
			close(fd);
	}
	return NULL;
}

static void print_counts(void)
{
	pthread_mutex_lock(&lock);
	printf("{\"requests\":%llu,\"refused\":%llu,\"unanswered\":%llu,\"twice\":%llu,"
	       "\"missing\":%llu,\"bad\":%llu,\"next\":[",
	       requests, refused, unanswered, twice, missing, bad);
	for (unsigned i = 0; i < sessions; i++)
		printf("%s%llu", i ? "," : "", next[i]);
	printf("]}\n");
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);
	char line[128];
	pthread_t t;
	double p;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0 ||
	    pthread_create(&t, NULL, accepter, (void *)(intptr_t)fd)) {
		perror("hook");
		return 1;
	}
	printf("%d\n", ntohs(a.sin_port));
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "sick %lf", &p) == 1) {
			pthread_mutex_lock(&lock);
			sick = p;
			pthread_mutex_unlock(&lock);
			puts("ok");
		} else {
			print_counts();
		}
	}
	_exit(0);
}

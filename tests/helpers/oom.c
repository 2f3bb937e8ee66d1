// SPDX-License-Identifier: Apache-2.0
// libs: -shared -fPIC -ldl
/* For LD_PRELOAD: the n-th allocation fails, and with `after` every one behind it, of a program and all it forks. The
 * file $OOM is a struct oom, which the test reads afterwards: how many allocations there were, and who crashed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct oom {
	uint64_t fail;	 /* this one fails, from 1; 0 = none */
	uint64_t after;	 /* and all behind it */
	uint64_t n;	 /* allocations so far */
	uint64_t failed; /* of them */
	uint64_t crashes;
};

/* glibc's own, by the names that it keeps for this. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static struct oom *oom;

static void crashed(int sig)
{
	__atomic_fetch_add(&oom->crashes, 1, __ATOMIC_RELAXED);
	signal(sig, SIG_DFL);
	raise(sig);
}

__attribute__((constructor)) static void map_orders(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
	const char *path = getenv("OOM");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, sizeof(*oom), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		_exit(99); /* a test in which nothing fails proves nothing */
	oom = p;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], crashed);
}

static int fails(void)
{
	uint64_t n;

	if (!oom)
		return 0;
	n = __atomic_add_fetch(&oom->n, 1, __ATOMIC_RELAXED);
	if (!oom->fail || n < oom->fail || (n > oom->fail && !oom->after))
		return 0;
	__atomic_fetch_add(&oom->failed, 1, __ATOMIC_RELAXED);
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

void *memalign(size_t align, size_t n)
{
	return fails() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p = memalign(align, n);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

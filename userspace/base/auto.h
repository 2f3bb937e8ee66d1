/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic cleanup: `auto_x` frees when the variable leaves its scope, take_ptr/take_fd hand
 * ownership on. One DEFINE_AUTO per type with a `thing_free(thing *)` that accepts NULL. */
#ifndef WARDER_BASE_AUTO_H
#define WARDER_BASE_AUTO_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFINE_AUTO(name, free_fn)                          \
	static inline void name##_autofree(struct name **p) \
	{                                                   \
		free_fn(*p);                                \
	}

#define AUTO(name) __attribute__((cleanup(name##_autofree)))

static inline void auto_free_fn(void *p)
{
	free(*(void **)p);
}

static inline void auto_close_fn(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void auto_file_fn(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void auto_dir_fn(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define auto_free  __attribute__((cleanup(auto_free_fn)))
#define auto_close __attribute__((cleanup(auto_close_fn)))
#define auto_file  __attribute__((cleanup(auto_file_fn)))
#define auto_dir   __attribute__((cleanup(auto_dir_fn)))

#define take_ptr(p)                         \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

#define take_fd(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

#endif

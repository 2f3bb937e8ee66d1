// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/path.h"

/* Appends the components of s to out (which starts with `root` bytes that ".." cannot remove). */
static size_t add_components(char *out, size_t n, struct str s, bool absolute)
{
	size_t i = 0;

	while (i < s.n) {
		size_t k = 0;

		while (i < s.n && s.p[i] == '/')
			i++;
		while (i + k < s.n && s.p[i + k] != '/')
			k++;
		if (k == 0)
			break;
		if (k == 1 && s.p[i] == '.') {
			i += k;
			continue;
		}
		if (k == 2 && s.p[i] == '.' && s.p[i + 1] == '.') {
			size_t last = n;

			while (last > 0 && out[last - 1] != '/')
				last--;
			/* out[last..n) is the last component */
			if (absolute) {
				n = last > 1 ? last - 1 : 0;
				i += k;
				continue;
			}
			if (n > 0 && !(n - last == 2 && out[last] == '.' && out[last + 1] == '.')) {
				n = last > 0 ? last - 1 : 0;
				i += k;
				continue;
			}
		}
		if (absolute || n > 0)
			out[n++] = '/';
		memcpy(out + n, s.p + i, k);
		n += k;
		i += k;
	}
	return n;
}

struct str path_join(struct arena *a, struct str base, struct str rel)
{
	bool rel_absolute = rel.n && rel.p[0] == '/', absolute;
	char *out;
	size_t n = 0;

	if (rel_absolute)
		base.n = 0;
	absolute = rel_absolute || (base.n && base.p[0] == '/');
	out = arena_alloc(a, base.n + rel.n + 3);
	if (!out)
		return (struct str){ 0 };
	n = add_components(out, n, base, absolute);
	n = add_components(out, n, rel, absolute);
	if (n == 0)
		out[n++] = absolute ? '/' : '.';
	out[n] = 0;
	return (struct str){ out, n };
}

bool path_is_clean(struct str path)
{
	if (path.n == 0 || path.p[0] != '/')
		return false;
	if (path.n == 1)
		return true;
	if (path.p[path.n - 1] == '/')
		return false;
	for (const char *p = path.p, *end = p + path.n; p && p + 1 < end;
	     p = memchr(p + 1, '/', (size_t)(end - p - 1))) {
		size_t left = (size_t)(end - p);

		if (p[1] == '/')
			return false;
		if (p[1] == '.' &&
		    (left == 2 || p[2] == '/' || (p[2] == '.' && (left == 3 || p[3] == '/'))))
			return false;
	}
	return true;
}

struct str path_name(struct str path)
{
	const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
	size_t skip = slash ? (size_t)(slash - path.p) + 1 : 0;

	return (struct str){ path.p ? path.p + skip : NULL, path.n - skip };
}

// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/route.h"

#include <string.h>
#include <strings.h>

#include "userspace/base/auto.h"

static bool is_token_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool route_value_is_good(const char *value)
{
	for (const unsigned char *p = (const unsigned char *)value; *p; p++)
		if ((*p < 32 && *p != '\t') || *p == 127)
			return false;
	return true;
}

/* ".", "..", and what an upstream may decode to them. */
static bool is_dots(const char *p, size_t n)
{
	size_t dots = 0;

	while (n) {
		size_t k = n >= 3 && !strncasecmp(p, "%2e", 3) ? 3 : *p == '.' ? 1 : 0;

		if (!k)
			return false;
		dots++;
		p += k;
		n -= k;
	}
	return dots == 1 || dots == 2;
}

static bool has_dots(const char *target)
{
	while (*target && *target != '?') {
		size_t n = strcspn(target, "/\\?"), slash = 0;

		/* An encoded slash is one to some servers. */
		for (size_t i = 0; i + 2 < n && !slash; i++)
			if (!strncasecmp(target + i, "%2f", 3) ||
			    !strncasecmp(target + i, "%5c", 3))
				slash = i + 1;
		if (slash)
			n = slash - 1;
		if (is_dots(target, n))
			return true;
		target += n;
		target += slash ? 3 : *target && *target != '?' ? 1 : 0;
	}
	return false;
}

bool route_target_is_good(const char *target, const char *prefix)
{
	size_t n = strlen(target);

	if (target[0] != '/' || n > ROUTE_PATH_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)target[i] <= 32 || (unsigned char)target[i] >= 127 ||
		    target[i] == '#')
			return false;
	return !*prefix || !has_dots(target);
}

bool route_host_is(const char *host, const char *name)
{
	size_t n = strlen(name);

	return host && !strncasecmp(host, name, n) && (!host[n] || !strcmp(host + n, ":80"));
}

static bool is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (list && *list) {
		size_t k;

		list += strspn(list, " \t,");
		k = strcspn(list, " \t,");
		if (k == n && !strncasecmp(list, name, n))
			return true;
		list += k;
	}
	return false;
}

bool route_header_passes(const char *name, const char *connection)
{
	/* Hop-by-hop, or made anew by who sends it. */
	static const char *const ours[] = {
		"Connection",
		"Keep-Alive",
		"Proxy-Authenticate",
		"Proxy-Authorization",
		"Proxy-Connection",
		"TE",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
		"Host",
		"Content-Length",
		"Expect",
		"HTTP2-Settings",
		"Alt-Svc",
		"Strict-Transport-Security",
	};
	size_t n = strlen(name);

	if (!n || n > ROUTE_HEADER_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_token_char((unsigned char)name[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strcasecmp(name, ours[i]))
			return false;
	return !is_listed(connection, name);
}

const char *route_method(const char *method)
{
	static const char *const known[] = { "GET",   "HEAD",	"POST",	  "PUT",
					     "PATCH", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], method))
			return known[i];
	return NULL;
}

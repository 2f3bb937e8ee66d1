// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/policy.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/option.h"

#define TEXT_MAX 512 /* of one entry */

const char *const egress_check_names[EGRESS_CHECK_COUNT] = {
	[EGRESS_OPAQUE] = "opaque",
	[EGRESS_TLS] = "tls",
	[EGRESS_HTTP] = "http",
};

/* Enough for a package manager and a browser; a scan or a tunnel runs into them. */
void egress_policy_init(struct egress_policy *p)
{
	memset(p, 0, sizeof(*p));
	p->limits = (struct egress_limits){
		.connections = 64,
		.rate = 50,
		.dns = 20,
		.idle_s = 600,
		.bytes = (uint64_t)16 << 30,
	};
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

bool egress_name_is_valid(const char *name, size_t n, size_t *ret_n)
{
	size_t label = 0;
	bool digits = true;

	if (n && name[n - 1] == '.')
		n--;
	if (n == 0 || n > EGRESS_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (name[i] == '.') {
			if (label == 0)
				return false;
			label = 0;
			digits = true;
			continue;
		}
		if (!is_label_char(name[i]) || ++label > EGRESS_LABEL_MAX)
			return false;
		digits &= name[i] >= '0' && name[i] <= '9';
	}
	if (label == 0 || digits)
		return false;
	/* "0x7f.1" is an address to some programs. */
	if (label > 2 && name[n - label] == '0' && lower(name[n - label + 1]) == 'x')
		return false;
	*ret_n = n;
	return true;
}

static int bad_entry(struct err *err, const char *text, const char *why)
{
	return err_set(err, EINVAL, "'%.128s': %s", text, why);
}

static bool parse_port(const char *text, uint16_t *ret)
{
	uint64_t v;

	if (parse_u64(text, &v) < 0 || v == 0 || v > 65535)
		return false;
	*ret = (uint16_t)v;
	return true;
}

static int add_row(struct egress_policy *p, const struct egress_row *row, const char *text,
		   struct err *err)
{
	uint16_t ports[EGRESS_PORTS_MAX];
	size_t n = egress_policy_ports(p, ports);

	for (size_t i = 0; i < p->rows_n; i++) {
		const struct egress_row *r = &p->rows[i];

		if (strcmp(r->name, row->name) != 0 || r->wildcard != row->wildcard ||
		    r->port != row->port)
			continue;
		if (r->check == row->check && !r->service && !row->service && !r->route &&
		    !row->route)
			return 0;
		return bad_entry(err, text, "this name and port was given before, and differently");
	}
	if (p->rows_n == EGRESS_ROWS_MAX)
		return err_set(err, E2BIG, "more than %d names and ports", EGRESS_ROWS_MAX);
	for (size_t i = 0; i < n; i++)
		if (ports[i] == row->port)
			n = 0;
	if (n == EGRESS_PORTS_MAX)
		return err_set(err, E2BIG, "more than %d different ports", EGRESS_PORTS_MAX);
	p->rows[p->rows_n++] = *row;
	return 0;
}

/* Lower case, without a final dot, in the plan's memory. */
static int take_name(struct egress_row *row, struct arena *mem, const char *name, const char *text,
		     struct err *err)
{
	struct egress_addr a;
	char *copy;
	size_t n;

	if (name[0] == '[' || egress_addr_parse(&a, name))
		return bad_entry(err, text,
				 "an address, not a name: --net-service NAME=IP:PORT gives it one");
	if (!egress_name_is_valid(name, strlen(name), &n))
		return bad_entry(err, text, "not a host name (letters, digits, - and _)");
	if (row->wildcard && !memchr(name, '.', n))
		return bad_entry(err, text, "a wildcard needs a domain of its own: *.example.org");
	copy = arena_zalloc(mem, n + 1);
	if (!copy)
		return err_set(err, ENOMEM, "network policy: %m");
	for (size_t i = 0; i < n; i++)
		copy[i] = lower(name[i]);
	row->name = copy;
	return 0;
}

static int parse_check(const char *word, uint8_t *ret)
{
	for (size_t i = 0; i < EGRESS_CHECK_COUNT; i++)
		if (!strcmp(word, egress_check_names[i])) {
			*ret = (uint8_t)i;
			return 0;
		}
	return -EINVAL;
}

const char *egress_policy_name(struct arena *mem, const char *name, struct err *err)
{
	struct egress_row row = { 0 };

	return take_name(&row, mem, name, name, err) < 0 ? NULL : row.name;
}

int egress_policy_add(struct egress_policy *p, const struct egress_row *row, const char *text,
		      struct err *err)
{
	return add_row(p, row, text, err);
}

static uint8_t check_of_port(uint16_t port)
{
	return port == 443 ? EGRESS_TLS : port == 80 ? EGRESS_HTTP : EGRESS_OPAQUE;
}

static int copy_entry(char *copy, const char *text, struct err *err)
{
	size_t n = strlen(text);

	if (n == 0 || n >= TEXT_MAX)
		return bad_entry(err, text, "expected HOST[:PORT]");
	memcpy(copy, text, n + 1);
	return 0;
}

int egress_policy_allow(struct egress_policy *p, struct arena *mem, const char *text,
			struct err *err)
{
	struct egress_row row = { 0 };
	char copy[TEXT_MAX], *colon, *slash, *name = copy;
	int r = copy_entry(copy, text, err);

	if (r < 0)
		return r;
	if (!strncmp(name, "*.", 2)) {
		row.wildcard = true;
		name += 2;
	}
	colon = strchr(name, ':');
	if (colon && !strchr(colon + 1, ':'))
		*colon = 0;
	else
		colon = NULL; /* none, or an IPv6 address, which take_name refuses */
	r = take_name(&row, mem, name, text, err);
	if (r < 0)
		return r;
	if (!colon) {
		row.port = 443;
		row.check = EGRESS_TLS;
		r = add_row(p, &row, text, err);
		row.port = 80;
		row.check = EGRESS_HTTP;
		return r < 0 ? r : add_row(p, &row, text, err);
	}
	slash = strchr(colon + 1, '/');
	if (slash)
		*slash = 0;
	if (!parse_port(colon + 1, &row.port))
		return bad_entry(err, text, "expected a port from 1 to 65535");
	row.check = check_of_port(row.port);
	if (slash && parse_check(slash + 1, &row.check) < 0)
		return bad_entry(err, text, "behind the port: tls, http or opaque");
	return add_row(p, &row, text, err);
}

int egress_policy_service(struct egress_policy *p, struct arena *mem, const char *text,
			  struct err *err)
{
	struct egress_row row = { .service = true, .check = EGRESS_OPAQUE };
	char copy[TEXT_MAX], *eq, *colon;
	int r = copy_entry(copy, text, err);

	if (r < 0)
		return r;
	eq = strchr(copy, '=');
	if (!eq)
		return bad_entry(err, text, "expected NAME[:PORT]=IP:PORT");
	*eq = 0;
	if (!egress_addr_port_parse(&row.to, &row.to_port, eq + 1, true))
		return bad_entry(err, text, "expected NAME[:PORT]=IP:PORT, the IP as a number");
	row.port = row.to_port;
	colon = strchr(copy, ':');
	if (colon) {
		*colon = 0;
		if (!parse_port(colon + 1, &row.port))
			return bad_entry(err, text, "expected a port from 1 to 65535");
	}
	r = take_name(&row, mem, copy, text, err);
	return r < 0 ? r : add_row(p, &row, text, err);
}

int egress_policy_limits(struct egress_policy *p, const char *text, struct err *err)
{
	struct egress_limits *l = &p->limits;
	const struct {
		const char *key;
		uint32_t *v;
		uint64_t max;
	} rows[] = {
		{ "connections", &l->connections, EGRESS_CONNECTIONS_MAX },
		{ "rate", &l->rate, EGRESS_RATE_MAX },
		{ "dns", &l->dns, EGRESS_RATE_MAX },
		{ "idle", &l->idle_s, EGRESS_IDLE_MAX },
	};
	char copy[TEXT_MAX], *save = NULL;
	int r = copy_entry(copy, text, err);

	if (r < 0)
		return r;
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(word, '=');
		uint64_t v;
		size_t i;

		if (!eq || parse_size(eq + 1, &v) < 0 || v == 0)
			return bad_entry(err, text, "expected KEY=N, and there must be a limit");
		*eq = 0;
		if (!strcmp(word, "bytes")) {
			if (v > EGRESS_BYTES_MAX)
				return bad_entry(err, text, "so many bytes are no limit");
			l->bytes = v;
			continue;
		}
		for (i = 0; i < ARRAY_SIZE(rows) && strcmp(rows[i].key, word) != 0; i++)
			;
		if (i == ARRAY_SIZE(rows))
			return bad_entry(err, text,
					 "limits are connections, rate, dns, idle, bytes");
		if (v > rows[i].max)
			return err_set(err, EINVAL, "'%.128s': %s is at most %llu", text, word,
				       (unsigned long long)rows[i].max);
		*rows[i].v = (uint32_t)v;
	}
	return 0;
}

int egress_policy_dns(struct egress_policy *p, const char *text, struct err *err)
{
	uint16_t port;

	if (!egress_addr_port_parse(&p->dns, &port, text, false))
		return bad_entry(err, text, "expected the resolver's IP[:PORT]");
	p->dns_port = port ? port : 53;
	return 0;
}

static bool row_has(const struct egress_row *r, const char *name, size_t n)
{
	size_t k = strlen(r->name);

	if (!r->wildcard)
		return n == k && !memcmp(name, r->name, n);
	return n > k + 1 && name[n - k - 1] == '.' && !memcmp(name + n - k, r->name, k);
}

bool egress_policy_has_name(const struct egress_policy *p, const char *name, size_t n)
{
	for (size_t i = 0; i < p->rows_n; i++)
		if (row_has(&p->rows[i], name, n))
			return true;
	return false;
}

const struct egress_row *egress_policy_find(const struct egress_policy *p, const char *name,
					    uint16_t port)
{
	const struct egress_row *best = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; i < p->rows_n; i++) {
		const struct egress_row *r = &p->rows[i];

		if (r->port != port || !row_has(r, name, n))
			continue;
		if (!r->wildcard)
			return r;
		if (!best || strlen(r->name) > strlen(best->name))
			best = r;
	}
	return best;
}

size_t egress_policy_ports(const struct egress_policy *p, uint16_t ports[EGRESS_PORTS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < p->rows_n; i++) {
		size_t k;

		for (k = 0; k < n && ports[k] != p->rows[i].port; k++)
			;
		if (k == n && n < EGRESS_PORTS_MAX)
			ports[n++] = p->rows[i].port;
	}
	return n;
}

static void number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void text(struct json *j, const char *key, const char *v)
{
	json_key(j, key);
	json_strz(j, v);
}

/* Names of headers, not what they say. */
static void route_json(const struct egress_policy *p, const struct egress_route *r, struct json *j)
{
	(void)p;
	text(j, "upstream", r->spec->url);
	if (r->spec->to)
		text(j, "to", r->spec->to);
	json_key(j, "own_ca");
	json_bool(j, r->spec->ca);
	json_key(j, "headers");
	json_array_begin(j);
	for (size_t i = 0; i < r->spec->headers; i++)
		json_strz(j, r->spec->header[i].name);
	json_array_end(j);
}

void egress_policy_json(const struct egress_policy *p, struct json *j)
{
	char buf[EGRESS_TEXT_MAX];

	json_key(j, "egress");
	json_object_begin(j);
	json_key(j, "reach");
	json_array_begin(j);
	for (size_t i = 0; i < p->rows_n; i++) {
		const struct egress_row *r = &p->rows[i];
		char name[EGRESS_NAME_MAX + 3];

		snprintf(name, sizeof(name), "%s%s", r->wildcard ? "*." : "", r->name);
		json_object_begin(j);
		text(j, "name", name);
		number(j, "port", r->port);
		if (r->route)
			route_json(p, &p->routes[r->route - 1], j);
		else if (r->service)
			text(j, "to", egress_addr_text(&r->to, r->to_port, buf));
		else
			text(j, "check", egress_check_names[r->check]);
		json_object_end(j);
	}
	json_array_end(j);
	number(j, "connections", p->limits.connections);
	number(j, "connection_rate", p->limits.rate);
	number(j, "dns_rate", p->limits.dns);
	number(j, "idle_s", p->limits.idle_s);
	number(j, "bytes", p->limits.bytes);
	if (p->dns.family)
		text(j, "resolver", egress_addr_text(&p->dns, p->dns_port, buf));
	json_object_end(j);
}

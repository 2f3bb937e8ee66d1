// SPDX-License-Identifier: Apache-2.0
/* A record of the journal in every format: one line of UTF-8 without control characters, JSON whose members can be
 * walked to the end, CEF and LEEF with their seven and six header fields, and twice the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/render/render.h"
#include "exporters/scan.h"
#include "userspace/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct renderer *renderers[16];

static void set_up(void)
{
	struct err err = { 0 };
	size_t n = 0;

	if (renderers[0])
		return;
	for (const struct format *f = render_formats + 1; f->name; f++)
		if (renderer_new(&renderers[n++], f, &err) < 0)
			abort();
}

static void check_json(struct str text)
{
	struct scan s = scan_of(text);
	struct str key, value;

	while (scan_member(&s, &key, &value))
		if (!value.n)
			abort();
	if (s.bad)
		abort();
}

static void check_header(struct str text, size_t fields)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n && n < fields; i++) {
		if (text.p[i] == '\\')
			i++;
		else
			n += text.p[i] == '|';
	}
	if (n < fields)
		abort();
}

static void check(const struct format *f, struct str text)
{
	if (!text.n || !utf8_is_valid(text))
		abort();
	for (size_t i = 0; i < text.n; i++)
		if (((unsigned char)text.p[i] < 0x20 && text.p[i] != '\t') || text.p[i] == 0x7f)
			abort();
	if (f->is_json)
		check_json(text);
	else
		check_header(text, strcmp(f->name, "cef") ? 6 : 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str line = { (const char *)data, size }, text;
	struct err err = { 0 };

	set_up();
	for (size_t i = 0; renderers[i]; i++) {
		char *first;
		size_t n;

		if (renderer_record(renderers[i], line, &text, &err) < 0) {
			if (!*err_text(&err))
				abort();
			continue;
		}
		check(renderer_format(renderers[i]), text);
		n = text.n;
		first = malloc(n);
		memcpy(first, text.p, n);
		if (renderer_record(renderers[i], line, &text, &err) < 0 || text.n != n ||
		    memcmp(first, text.p, n))
			abort();
		free(first);
	}
	return 0;
}

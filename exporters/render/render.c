// SPDX-License-Identifier: Apache-2.0
#include "exporters/render/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/render/ecs.h"
#include "exporters/render/map.h"
#include "exporters/render/ocsf.h"
#include "exporters/render/text.h"
#include "userspace/base/auto.h"
#include "userspace/base/option.h"

#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"

const struct format render_formats[] = {
	{ "native", "native/1", JSON_TYPE, true, 0, "the journal's own JSON", NULL },
	{ "ocsf", "ocsf/1.8.0", JSON_TYPE, true, V18, "OCSF 1.8", render_ocsf },
	{ "ocsf-1.8", "ocsf/1.8.0", JSON_TYPE, true, V18, "the same", render_ocsf },
	{ "ocsf-1.5", "ocsf/1.5.0", JSON_TYPE, true, V15, "OCSF 1.5", render_ocsf },
	{ "ocsf-1.3", "ocsf/1.3.0", JSON_TYPE, true, V13, "OCSF 1.3", render_ocsf },
	{ "ocsf-1.1", "ocsf/1.1.0", JSON_TYPE, true, V11, "OCSF 1.1", render_ocsf },
	{ "ecs", "ecs/9.4.0", JSON_TYPE, true, 0, "Elastic Common Schema 9.4", render_ecs },
	{ "cef", "cef/0", TEXT_TYPE, false, 0, "ArcSight CEF", render_cef },
	{ "leef", "leef/2.0", TEXT_TYPE, false, 0, "QRadar LEEF 2.0", render_leef },
	{ 0 },
};

struct renderer {
	const struct format *format;
	struct arena arena;
	struct buf text;
	struct event event;
};

const struct format *format_find(const char *name, struct err *err)
{
	const char *names[ARRAY_SIZE(render_formats)], *near;
	char known[256] = "";
	size_t n = 0, at = 0;

	for (const struct format *f = render_formats; f->name; f++) {
		if (!strcmp(f->name, name))
			return f;
		names[n++] = f->name;
	}
	near = closest_name(name, names, n);
	if (near) {
		err_set(err, EINVAL, "unknown format '%s': did you mean '%s'?", name, near);
		return NULL;
	}
	for (size_t i = 0; i < n && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       names[i]);
	err_set(err, EINVAL, "unknown format '%s': known are %s", name, known);
	return NULL;
}

int renderer_new(struct renderer **ret, const struct format *format, struct err *err)
{
	struct renderer *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(err, ENOMEM, "out of memory");
	r->format = format;
	arena_init(&r->arena, RENDER_EVENT_MAX);
	buf_init(&r->text, RENDER_TEXT_MAX);
	*ret = r;
	return 0;
}

void renderer_free(struct renderer *r)
{
	if (!r)
		return;
	arena_done(&r->arena);
	buf_done(&r->text);
	free(r);
}

const struct format *renderer_format(const struct renderer *r)
{
	return r->format;
}

int renderer_event(struct renderer *r, const struct event *ev, struct str json,
		   struct str *ret_text, struct err *err)
{
	int code;

	if (!r->format->render) {
		*ret_text = json;
		return 0;
	}
	buf_reset(&r->text);
	code = r->format->render(r->format, ev, &r->text);
	if (code == 0 && r->text.failed)
		code = -EMSGSIZE;
	if (code < 0)
		return err_set(err, code, "not rendered as %s: %m", r->format->name);
	*ret_text = (struct str){ r->text.p, r->text.n };
	return 0;
}

int renderer_record(struct renderer *r, struct str json, struct str *ret_text, struct err *err)
{
	int code;

	if (!r->format->render) {
		*ret_text = json;
		return 0;
	}
	arena_reset(&r->arena);
	code = event_from_json(&r->event, &r->arena, json, err);
	if (code < 0)
		return code == -ENOMEM ? code : err_wrap(err, -EBADMSG, "not rendered");
	return renderer_event(r, &r->event, json, ret_text, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of one line of text: CEF (ArcSight, revision 25) and LEEF 2.0 (QRadar). */
#ifndef WARDER_EXPORTERS_RENDER_TEXT_H
#define WARDER_EXPORTERS_RENDER_TEXT_H

#include "exporters/render/render.h"

/* A value longer than the dictionary of CEF allows its key is cut there, and whole under a key of ours. */
#define CEF_OWN_PREFIX "Warder"

int render_cef(const struct format *f, const struct event *ev, struct buf *out);
int render_leef(const struct format *f, const struct event *ev, struct buf *out);

#endif

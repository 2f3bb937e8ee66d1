/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_EXPORTERS_RENDER_ECS_H
#define WARDER_EXPORTERS_RENDER_ECS_H

#include "exporters/render/render.h"

int render_ecs(const struct format *f, const struct event *ev, struct buf *out);

#endif

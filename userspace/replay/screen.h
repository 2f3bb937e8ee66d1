/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorded terminal showed: output goes through neutral.h and then into libvterm; what comes out is cells,
 * never the bytes that made them. */
#ifndef WARDER_REPLAY_SCREEN_H
#define WARDER_REPLAY_SCREEN_H

#include <stdbool.h>
#include "userspace/base/buf.h"
#include "userspace/base/str.h"

#define SCREEN_SIDE_MAX 512 /* rows, and columns; larger ones are cut */
#define SCREEN_STREAMS	3   /* as in userspace/store/terminal.h: a terminal, stdout, stderr */

struct screen;

/* NULL: no memory. Sizes of 0 become 24 and 80. */
struct screen *screen_new(unsigned rows, unsigned cols);
void screen_free(struct screen *s);
void screen_resize(struct screen *s, unsigned rows, unsigned cols);
void screen_size(const struct screen *s, unsigned *ret_rows, unsigned *ret_cols);
/* Empty, of that size, all modes as at first. -ENOMEM. */
int screen_reset(struct screen *s, unsigned rows, unsigned cols);
/* Streams other than 0 came through pipes: their lines end without a carriage return. */
int screen_feed(struct screen *s, unsigned stream, struct str bytes);
/* One row, at most `cols` columns, for a terminal: text and colours, the latter undone at its end. */
int screen_row(const struct screen *s, unsigned row, unsigned cols, bool colour, struct buf *out);
/* False: it is hidden. */
bool screen_cursor(const struct screen *s, unsigned *ret_row, unsigned *ret_col);

#endif

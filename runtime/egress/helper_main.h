/* SPDX-License-Identifier: Apache-2.0 */
/* Between the launcher and the helper. */
#ifndef WARDER_RUNTIME_EGRESS_HELPER_MAIN_H
#define WARDER_RUNTIME_EGRESS_HELPER_MAIN_H

#include "runtime/egress/egress.h"

/* From the helper, once. */
struct helper_ready {
	int32_t error; /* errno; 0 = ready */
	char text[252];
};

/* The helper's whole life. Ends when the other end of `control` does. */
void helper_main(int control, const struct egress_options *opt) __attribute__((noreturn));

#endif

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# C files as clang-format wants them; --fix rewrites. Other major versions format differently, so only the
# one that the tree is formatted with has a say.
set -euo pipefail
# shellcheck source=files.sh
. "$(dirname "$0")/files.sh"
major=14

tool=
for t in clang-format-$major clang-format; do
	if command -v "$t" >/dev/null && "$t" --version | grep -q "version $major\\."; then
		tool=$t
		break
	fi
done
if [ -z "$tool" ]; then
	echo "skipped: needs clang-format $major"
	exit 77
fi
mapfile -t list < <(files '*.c' '*.h')
if [ "${1:-}" = --fix ]; then
	"$tool" -i "${list[@]}"
else
	"$tool" --dry-run -Werror --ferror-limit=3 "${list[@]}" 2>&1 | grep -E 'error:' && exit 1
	exit 0
fi

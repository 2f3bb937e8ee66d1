#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# C files as clang-format wants them; --fix rewrites. Other major versions format differently, so only the
# one that the tree is formatted with has a say. usage: format.sh [--fix] [FILE...]
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
fix=
[ "${1:-}" != --fix ] || { fix=1 && shift; }
if [ $# -gt 0 ]; then list=("$@"); else mapfile -t list < <(files '*.c' '*.h'); fi
if [ -n "$fix" ]; then
	"$tool" -i "${list[@]}"
else
	"$tool" --dry-run -Werror --ferror-limit=3 "${list[@]}" 2>&1 | { grep 'error:' || :; }
fi

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is freed at the end of its block is set where it is declared: a return between the two would free what lay there.
# init.sh [ROOT]: another root is for the test of this check.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"

# shellcheck disable=SC2016  # awk's fields
{ find bpf userspace rules runtime exporters tests -name '*.[ch]' -print 2>/dev/null || :; } | sort | xargs awk '
/^[ \t]+(auto_[a-z]+|AUTO\([a-z_]+\)) .*;/ {
	text = $0
	gsub(/"[^"]*"/, "", text)
	while (gsub(/\([^()]*\)|\{[^{}]*\}/, "", text))
		;
	n = split(text, part, ",")
	for (i = 1; i <= n; i++)
		if (part[i] !~ /=/) {
			printf "%s:%d: set it where it is declared\n", FILENAME, FNR
			failed = 1
			break
		}
}
END { exit failed }'

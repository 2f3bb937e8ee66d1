# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the checks: our own files by extension, without products and generated ones.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

files() { # files '*.c' '*.h' ...
	local names=()
	for n in "$@"; do names+=(-o -name "$n"); done
	find . \( -path './build*' -o -path ./.git -o -path ./vmlinux -o -path './tests/fuzz/corpus' \) -prune -o \
		-type f \( "${names[@]:1}" \) -print | sed 's|^\./||' | sort
}

failures=0
complain() {
	printf '%s\n' "$*"
	failures=$((failures + 1))
}

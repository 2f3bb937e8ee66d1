#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The shape of the tree and what must not be in it.
set -euo pipefail
# shellcheck source=files.sh
. "$(dirname "$0")/files.sh"

# Top level: exactly these, dotfiles, the licence, and products.
for f in *; do
	case $f in
	Makefile | bpf | userspace | runtime | rules | exporters | tests | vmlinux | README.md | LICENSE) ;;
	build | build-*) ;;
	*) complain "$f: the top level is fixed" ;;
	esac
done

# Each top-level folder tells what it is for.
for d in bpf userspace runtime rules exporters tests vmlinux; do
	[ ! -d "$d" ] || [ -s "$d/README.md" ] || complain "$d: has no README.md"
done

# Every source says its licence in its first lines.
while read -r f; do
	complain "$f: no SPDX-License-Identifier"
done < <(files '*.c' '*.h' '*.sh' '*.py' | xargs awk '
	FNR == 1 { n++; name[n] = FILENAME }
	FNR <= 3 && /SPDX-License-Identifier:/ { said[FILENAME] = 1 }
	END { for (i = 1; i <= n; i++) if (!said[name[i]]) print name[i] }')

# Libraries return errors: nothing below cli aborts or allocates by aborting, and some calls are never right.
mapfile -t ours < <(files '*.c' '*.h' | grep -E '^(userspace|rules|exporters|runtime)/')
while read -r hit; do
	complain "$hit"
done < <(grep -nE '\b(xmalloc|xcalloc|xrealloc|xstrdup)[ ]?\(' "${ours[@]}" /dev/null | grep -v '^userspace/cli/')
while read -r hit; do
	complain "$hit"
done < <(grep -nE '\b(abort|strcpy|strcat|sprintf|vsprintf|gets|system|popen|mktemp|tmpnam|alloca|atoi|atol)[ ]?\(' \
	"${ours[@]}" /dev/null | grep -vE ':[0-9]+:[[:space:]]*(\*|//|/\*)' |
	# The compiler checks the size of a literal; a host without a random generator cannot name a session.
	grep -vE 'strcpy\([^,]*, "[^"]*"\)|^userspace/base/ulid\.c:[0-9]+:[[:space:]]*abort\(')
while read -r hit; do
	complain "$hit: only main and the sandbox's own processes exit"
done < <(grep -nE '(^|[^_a-z])exit\(' "${ours[@]}" /dev/null |
	grep -vE '^(userspace/(main|cli/|pipeline/)|runtime/)' | grep -vE ':[0-9]+:[[:space:]]*(\*|//|/\*)')

# Conflict markers and spaces at the end of a line.
while read -r hit; do
	complain "$hit"
done < <(files '*.c' '*.h' '*.sh' '*.py' '*.md' '*.yaml' Makefile | xargs grep -nE '^(<<<<<<<|>>>>>>>) |[[:space:]]$' |
	grep -v '^tests/golden/')

[ "$failures" -eq 0 ]

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A script as they grow in operations: pipes, substitutions, here documents, background jobs, traps, base64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for i in $(seq 1 200); do echo "$((i % 7)) user$i 192.0.2.$((i % 250)) $((i * 37 % 1000))"; done >"$work/log"
sort -n "$work/log" | cut -d' ' -f1,4 | awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' | sort | tee "$work/sums" | wc -l
grep -E 'user1[0-9]{2}' "$work/log" | sed 's/user/u/' | tr '[:lower:]' '[:upper:]' | uniq -c | head -3 | cat -A >"$work/head" || true
for n in 1 2 3 4; do (gzip -c "$work/log" | zcat | md5sum >"$work/sum.$n") & done
wait
cat "$work"/sum.* | sort -u | wc -l
echo 'some data' | base64 | base64 -d
while IFS=' ' read -r k v; do printf '%s=%d\n' "$k" "$v"; done <"$work/sums" | paste -sd, -
find /usr/bin -maxdepth 1 -name 'g*' -print0 | xargs -0 -n 20 -P 2 ls -l | wc -l | grep -q '[0-9]'
diff <(sort "$work/sums") <(sort -r "$work/sums" | sort)
crontab_like=$(date +%H:%M)
echo "${#crontab_like}"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of the HTML report parse, and keep what its policy and the hostile strings need of them.
set -euo pipefail
# shellcheck source=files.sh
. "$(dirname "$0")/files.sh"
web=userspace/replay/web

# Text of a sandbox becomes an element's text, never markup, code, an address or a style.
while read -r hit; do
	complain "$hit: not in a page of hostile strings"
done < <(grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\("|\.(href|src|cssText)\b *=' \
	$web/*.js || :)
while read -r hit; do
	complain "$hit: the page has no handlers, styles or scripts inside of its markup"
done < <(grep -nE ' on[a-z]+=| style=|<script|<style|href=|src=' $web/page.html || :)
# A tag that ends the script's or the style's element early.
while read -r hit; do
	complain "$hit: ends the element that it is put into"
done < <(grep -niE '</(script|style)|<!--' $web/*.js $web/*.css || :)
for f in "$web"/*.js "$web"/*.css; do
	head -n 1 "$f" | grep -q SPDX-License-Identifier || complain "$f: no SPDX-License-Identifier"
done
# Packages are pinned by hash; where from is npm's configuration, not ours.
! grep -nE '"resolved"|https?://' $web/package-lock.json || complain "$web/package-lock.json: names a registry"
[ "$(grep -c '"integrity"' $web/package-lock.json)" = "$(grep -c '^    "node_modules/' $web/package-lock.json)" ] ||
	complain "$web/package-lock.json: a package without its hash"

if ! command -v node >/dev/null; then
	[ "$failures" -eq 0 ] || exit 1
	echo "skipped: needs node"
	exit 77
fi
for f in "$web"/*.js; do
	node --check "$f" || complain "$f: does not parse"
done
[ "$failures" -eq 0 ]

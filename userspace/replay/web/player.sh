#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: player.sh NODE_MODULES > player.js
# The terminal player with the licences of what is in it: the page hands it on, and so must hand on these.
set -eu

modules=$1
player=$modules/asciinema-player/dist/bundle/asciinema-player.min.js
# What would end the script's element early cannot be carried inside of it.
if grep -qiE '</script|<!--' "$player"; then
	echo "error: $player cannot be put into a page" >&2
	exit 1
fi
version() { sed -n 's/.*"version": "\([^"]*\)".*/\1/p' "$modules/$1/package.json" | head -n 1; }

printf '/*! asciinema-player %s, with solid-js %s inside. Their licences:\n\n' "$(version asciinema-player)" \
	"$(version solid-js)"
sed 's|\*/|* /|g' "$modules/asciinema-player/LICENSE"
printf '\n-- solid-js --\n\n'
sed 's|\*/|* /|g' "$modules/solid-js/LICENSE"
printf '*/\n'
cat "$player"
printf '\n'

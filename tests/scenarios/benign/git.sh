#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A repository, a clone, branches, a rebase with a conflict, a stash, a tag, packing and a push.
set -eu
git config --global user.email dev@example.org
git config --global user.name Dev
git config --global init.defaultBranch main
git config --global advice.detachedHead false
git init -q --bare origin.git
git clone -q origin.git work 2>/dev/null
cd work
for i in 1 2 3 4 5; do
	echo "line $i" >>text
	mkdir -p "d$i" && echo "$i" >"d$i/file"
	git add -A && git commit -q -m "step $i"
done
git push -q origin main
git checkout -q -b feature HEAD~2
echo mine >>text
git commit -q -a -m mine
git rebase main >/dev/null 2>&1 && exit 1
git checkout --theirs text 2>/dev/null
git add text
GIT_EDITOR=true git rebase --continue >/dev/null 2>&1
git checkout -q main
git merge -q --no-edit feature
echo later >>text && git stash -q && git stash pop -q && git checkout -q -- text
git tag -a v1 -m one
git gc -q --prune=now
git fsck --no-progress
git push -q --tags origin main
cd ..
git clone -q origin.git again
git -C again log --oneline --graph | wc -l
git -C again describe

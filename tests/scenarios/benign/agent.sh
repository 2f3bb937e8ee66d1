#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a coding agent does in somebody's repository: looks around, runs the tests, mends the code, adds a test,
# looks at the difference, commits.
set -euo pipefail
export HOME=/tmp/home
mkdir -p "$HOME"
git config --global user.email agent@example.org
git config --global user.name Agent
git config --global --add safe.directory /workspace
cd /workspace
git status --short
ls -la && git log --oneline && find . -name "*.py" -not -path "./.git/*" -exec wc -l {} +
grep -rn "def " --include=*.py . | head
cat calc/core.py README.md
python3 -m pytest -q && exit 1
python3 - <<'END'
import pathlib, re
p = pathlib.Path("calc/core.py")
p.write_text(re.sub(r"return a - b  # add", "return a + b", p.read_text()))
END
sed -i 's/adds wrongly/adds/' README.md
python3 -m pytest -q
printf '\ndef test_add_negative():\n    assert add(-1, 1) == 0\n' >>tests/test_core.py
python3 -m pytest -q
python3 -m compileall -q calc
printf '#!/bin/sh\nexec python3 -m pytest -q "$@"\n' >run-tests
chmod +x run-tests
./run-tests -x
git --no-pager diff --stat
git checkout -q -b mend
git add -A
git commit -q -m "calc: add adds"
git --no-pager log --stat -1

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 5,000 files written, packed, unpacked, compared, copied and, in /tmp, removed.
set -eu
python3 - <<'END'
import os
for d in range(50):
    os.makedirs("tree/%d" % d)
    for i in range(100):
        with open("tree/%d/%d.txt" % (d, i), "w") as f:
            f.write("%d %d\n" % (d, i))
END
tar czf tree.tgz tree
mkdir /tmp/out
tar xzf tree.tgz -C /tmp/out
diff -r tree /tmp/out/tree
cp -a /tmp/out/tree /tmp/copy
find /tmp/copy -type f | wc -l
rm -r /tmp/copy /tmp/out

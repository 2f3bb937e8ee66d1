#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Debian package built, listed, unpacked and compared.
set -eu
mkdir -p pkg/DEBIAN pkg/usr/bin pkg/usr/share/doc/gruss pkg/etc
printf 'Package: gruss\nVersion: 1.2-3\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: says hello\n' >pkg/DEBIAN/control
printf '#!/bin/sh\nset -e\nexit 0\n' >pkg/DEBIAN/postinst
printf '/etc/gruss.conf\n' >pkg/DEBIAN/conffiles
printf '#!/bin/sh\necho hello\n' >pkg/usr/bin/gruss
echo x >pkg/usr/share/doc/gruss/copyright
echo y >pkg/etc/gruss.conf
chmod 755 pkg/DEBIAN/postinst pkg/usr/bin/gruss
dpkg-deb --root-owner-group --build pkg gruss_1.2-3_all.deb
dpkg-deb -I gruss_1.2-3_all.deb >info
dpkg-deb -c gruss_1.2-3_all.deb | wc -l
dpkg-deb -f gruss_1.2-3_all.deb Package Version
dpkg-deb -x gruss_1.2-3_all.deb out
dpkg-deb -e gruss_1.2-3_all.deb out/DEBIAN
diff -r pkg out

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A virtual environment, packages from an index: two wheels, one of which needs the other, and a source package.
set -eu
index=$1
python3 -m venv --system-site-packages venv
# shellcheck disable=SC1091  # made by the line above
. venv/bin/activate
pip install --disable-pip-version-check -q --no-build-isolation -i "$index" farbe==2.1 holz==0.3
pip list --disable-pip-version-check | grep -E "^(farbe|grund|holz) "
farbe-sagen
python -c 'import holz, grund; print(holz.made, grund.__name__)'
pip uninstall -q -y holz

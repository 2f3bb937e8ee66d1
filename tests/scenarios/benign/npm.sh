#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A project with a package of a scope, what that needs, an install script, a script of its own and a clean install.
set -eu
registry=$1
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
mkdir app && cd app
npm init -y >/dev/null
npm install --registry "$registry" @werk/uhr@1.4.0 zeiger@2.0.1
node -e 'console.log(require("@werk/uhr")(), require("zeiger").version, require("fs").readFileSync("node_modules/zeiger/built", "utf8"))'
npm pkg set scripts.test="node -e \"require('assert')(require('@werk/uhr')())\""
npm test
npm ci --registry "$registry"
npm ls

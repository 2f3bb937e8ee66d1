// SPDX-License-Identifier: Apache-2.0
// A process of its own asks the server of node.js and tells what it heard.
require('http').get({ host: '127.0.0.1', port: process.argv[2], path: '/child' }, r => {
	let s = '';
	r.on('data', d => s += d).on('end', () => process.send(s, () => process.exit(0)));
});

// SPDX-License-Identifier: Apache-2.0
// A server with workers and its client, child processes, files; as a web project's end-to-end test does it.
const http = require('http'), fs = require('fs'), cp = require('child_process'), { Worker } = require('worker_threads');
const assert = require('assert');
const get = (port, path) => new Promise((ok, bad) => http.get({ host: '127.0.0.1', port, path }, r => {
	let s = '';
	r.on('data', d => s += d).on('end', () => ok(s));
}).on('error', bad));
(async () => {
	const server = http.createServer((q, r) => {
		const w = new Worker(`require('worker_threads').parentPort.postMessage(${JSON.stringify(q.url)}.toUpperCase())`, { eval: true });
		w.once('message', m => r.end(m));
	});
	await new Promise(ok => server.listen(0, '127.0.0.1', ok));
	const port = server.address().port;
	const all = await Promise.all([...Array(20).keys()].map(i => get(port, '/page' + i)));
	assert.deepStrictEqual(all, all.map((_, i) => '/PAGE' + i));
	fs.mkdirSync('dist', { recursive: true });
	for (const [i, s] of all.entries()) fs.writeFileSync(`dist/${i}.txt`, s);
	const child = cp.fork(__filename.replace('node.js', 'node-child.js'), [String(port)]);
	await new Promise(ok => child.once('message', m => { assert.strictEqual(m, '/CHILD'); ok(); }));
	assert.strictEqual(cp.execSync('cat dist/7.txt | tr A-Z a-z').toString(), '/page7');
	assert.strictEqual(cp.spawnSync('node', ['-p', '6*7']).stdout.toString(), '42\n');
	server.close();
	console.log('served', all.length);
})().catch(e => { console.error(e); process.exit(1); });

// The way between the editor and the daemon, which can be cut. The editor is given a home that names this way's port.
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';

export class Way {
  constructor(daemon, home) {
    Object.assign(this, { daemon, home, pairs: new Set(), isOpen: true });
    mkdirSync(home, { mode: 0o700 });
  }

  // Opens it to the daemon as it listens now, and tells the editor, as the daemon tells it.
  async lead() {
    const { port: target, socket: _, ...found } = JSON.parse(readFileSync(`${this.daemon.home}/http-mcp.json`, 'utf8'));
    this.listener?.close();
    this.listener = createServer((near) => {
      if (!this.isOpen) return near.destroy();
      const far = connect(target, '127.0.0.1');
      const pair = [near, far];
      this.pairs.add(pair);
      for (const [one, other] of [[near, far], [far, near]]) {
        one.setNoDelay(true);
        one.on('data', (bytes) => other.write(bytes));
        one.on('error', () => {});
        one.on('close', () => { other.destroy(); this.pairs.delete(pair); });
      }
    });
    await new Promise((done) => this.listener.listen(0, '127.0.0.1', done));
    const { port } = this.listener.address();
    copyFileSync(`${this.daemon.home}/plugin-token`, `${this.home}/plugin-token`);
    writeFileSync(`${this.home}/.new`, JSON.stringify({ ...found, port, url: `http://127.0.0.1:${port}` }));
    renameSync(`${this.home}/.new`, `${this.home}/http-mcp.json`);
  }

  // Cuts every connection, and lets none through until it is mended.
  cut() {
    this.isOpen = false;
    for (const pair of this.pairs) pair.forEach((socket) => socket.resetAndDestroy());
  }

  mend() { this.isOpen = true; }

  close() { this.cut(); this.listener?.close(); }
}

// What was tried, and what came of it.
import { writeFileSync } from 'node:fs';

const HEAD = ['tool', 'what ran', 'result', 'ms', 'enforced', 'network'];

export class Table {
  constructor() { Object.assign(this, { rows: [], passed: 0, all: 0, begun: performance.now() }); }

  skip(tool, what, why) {
    console.log(`skip  ${tool}: ${what}: ${why}`);
    this.rows.push([tool, what, `skipped: ${why}`, '', '', '']);
  }

  // `run` returns what the answer said of the fence, how long it took, and what came of it in words.
  async row(tool, what, network, run) {
    this.all += 1;
    const begun = performance.now();
    try {
      const { fence, took = performance.now() - begun, result = 'ok' } = await run();
      if (fence?.enforced !== 'sandbox' || fence.network !== network) throw new Error(`the fence is ${JSON.stringify(fence)}`);
      this.passed += 1;
      const ms = String(Math.round(took));
      console.log(`ok    ${tool}: ${what}: ${result}  ${ms} ms`);
      this.rows.push([tool, what, result, ms, fence.enforced, fence.network]);
    } catch (error) {
      const why = error.message.slice(0, 2500);
      console.log(`FAIL  ${tool}: ${what}: ${why}`);
      this.rows.push([tool, what, `FAILED: ${why.split('\n')[0].slice(0, 100)}`, '', '', '']);
    }
  }

  finish(file) {
    const line = (cells) => `| ${cells.join(' | ')} |`;
    const text = [line(HEAD), `|${'---|'.repeat(HEAD.length)}`, ...this.rows.map(line), ''].join('\n');
    writeFileSync(file, text);
    const skipped = this.rows.length - this.all;
    console.log(`\n${text}\n(${((performance.now() - this.begun) / 1000).toFixed(1)} s)`);
    console.log(`work: ${this.passed}/${this.all} rows work${skipped ? `, ${skipped} skipped` : ''}`);
    process.exit(this.passed === this.all ? 0 : 1);
  }
}

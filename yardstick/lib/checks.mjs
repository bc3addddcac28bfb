// What was checked, and what came of it.
export class Checks {
  constructor() { Object.assign(this, { passed: 0, all: 0, begun: Date.now() }); }

  section(name) { this.now = name; }

  async check(text, language, run) {
    this.all += 1;
    const begun = performance.now();
    const what = `${this.now}: ${text}${language && ` (${language})`}`;
    try {
      const came = await run();
      if (!came || (typeof came === 'string' && came.length > 60)) throw new Error(`it came to ${came}`);
      this.passed += 1;
      console.log(`ok    ${what}  ${Math.round(performance.now() - begun)} ms`);
    } catch (error) {
      console.log(`FAIL  ${what}: ${error.message.slice(0, 1500)}`);
    }
  }

  fail(why) {
    this.all += 1;
    console.log(`FAIL  ${why}`);
  }

  // The last line, and the end.
  end(name) {
    console.log(`(${((Date.now() - this.begun) / 1000).toFixed(1)} s)`);
    console.log(`${name}: ${this.passed}/${this.all} checks passed`);
    process.exit(this.passed === this.all ? 0 : 1);
  }
}

// The person's browser. Whatever the page complains of, and whatever its policy had to stop, is a failure.
import { chromium } from 'playwright-core';

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const SIZES = { wide: { width: 1280, height: 860 }, phone: { width: 360, height: 740 } };

export class Browser {
  static async open(executablePath, shots) {
    const self = new Browser();
    Object.assign(self, { shots, complaints: [], expected: [], taken: [] });
    self.browser = await chromium.launch({ executablePath, args: FLAGS });
    self.context = await self.browser.newContext({ viewport: SIZES.wide, colorScheme: 'light', reducedMotion: 'reduce' });
    self.page = await self.context.newPage();
    self.page.setDefaultTimeout(10_000);
    await self.page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
    });
    self.page.on('console', (message) => { if (message.type() === 'error') self.complain(message.text()); });
    self.page.on('pageerror', (error) => self.complain(`uncaught: ${error.message}`));
    return self;
  }

  complain(text) {
    if (!this.expected.some((pattern) => pattern.test(text))) this.complaints.push(text);
  }

  // What a browser says of an answer that was meant to be a refusal, while that is what is tried.
  async expecting(pattern, work) {
    this.expected.push(pattern);
    try { return await work(); } finally { this.expected.pop(); }
  }

  async live() { await this.page.waitForSelector('#live[data-state="live"]'); }

  // Every look that a page has, wide and on a phone, light and dark.
  async shoot(name, { whole = true } = {}) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      await this.page.setViewportSize(viewport);
      for (const colorScheme of ['light', 'dark']) {
        await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        const file = `${name}-${size}-${colorScheme}.png`;
        await this.page.screenshot({ path: `${this.shots}/${file}`, fullPage: whole });
        this.taken.push(file);
      }
      const wider = await this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wider > 0) this.complaints.push(`${name} is ${wider} px wider than a ${size} window`);
    }
    await this.page.setViewportSize(SIZES.wide);
    await this.page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  }

  close() { return this.browser.close(); }
}

// Waits for what is to come, and says what did not.
export async function until(what, look, limit = 20_000) {
  const end = Date.now() + limit;
  let last;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) { last = error; }
    if (Date.now() > end) throw new Error(`never: ${what}${last ? ` (${last.message})` : ''}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

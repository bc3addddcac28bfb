// Where the project or the repository of a folder is looked for: from the folder up to the granted one. This window may have more
// open than was granted, and what lies above is none of the agent's business.

import { dirname } from 'node:path';

import type { Call } from '../verbs';

type Asked = Pick<Call, 'desk' | 'mayChange'>;

/** The folder and those above it, as far as they were granted; only itself if the daemon does not say what was. */
export function upwards(call: Asked, folder: string): string[] {
  const found = [folder];
  for (let above = dirname(folder); isGranted(call, above); above = dirname(above)) found.push(above);
  return found;
}

/** Whether a real path is known to be granted, and in this window. */
export function isGranted({ desk, mayChange }: Asked, path: string): boolean {
  const isSaid = !mayChange('/');
  return isSaid && mayChange(path) && desk.roots.holds(path);
}

// Paths as the disk has them, links resolved. Whether a path may be reached is decided in roots.ts.

import { readlinkSync, realpathSync } from 'node:fs';
import * as nodePath from 'node:path';

/** Links that are followed on one way, as the kernel has it. */
const MAX_LINKS = 40;

/** Whether a path is a folder or lies beneath it, by name. Both are absolute and without `..`. */
export function isBeneath(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Returns where a path really is: links are resolved as far as it is there, what is not there yet hangs below. */
export function realOf(path: string): string {
  const missing: string[] = [];
  for (let there = nodePath.resolve(path), links = 0; ;) {
    try {
      return nodePath.join(realpathSync.native(there), ...missing);
    } catch (error) {
      if (!isMissing(error) || links > MAX_LINKS) throw error;
    }
    // A link to what is not there yet leads elsewhere all the same: whoever writes by its name writes there.
    const goal = linkedTo(there);
    if (goal === undefined) {
      missing.unshift(nodePath.basename(there));
      there = nodePath.dirname(there);
    } else {
      there = nodePath.resolve(nodePath.dirname(there), goal);
      links += 1;
    }
  }
}

function linkedTo(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** The same; what cannot be found is taken as it is written. */
export function realOr(path: string): string {
  try {
    return realOf(path);
  } catch {
    return nodePath.resolve(path);
  }
}

/** Returns where a name really is, without following it: a link is itself, only the folders above it are resolved. */
export function realNameOf(path: string): string {
  const whole = nodePath.resolve(path);
  return nodePath.join(realOf(nodePath.dirname(whole)), nodePath.basename(whole));
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

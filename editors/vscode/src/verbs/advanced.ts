// Code lenses, quick fixes and renames of symbols. manage_plugins is about all editors, and the daemon's own.

import type { Verb } from '../verbs';
import { apply_quick_fix } from './advanced/fix';
import { get_code_lens } from './advanced/lens';
import { refactor_symbol } from './advanced/rename';

export const advanced: Record<string, Verb> = { get_code_lens, apply_quick_fix, refactor_symbol };

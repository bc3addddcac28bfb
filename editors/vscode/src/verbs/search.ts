// Finding and replacing, in texts as they are in the editor.

import type { Verb } from '../verbs';
import { find_in_file } from './search/find';
import { ripgrep } from './search/place';
import { find_in_project, regex_search } from './search/project';
import { replace_text } from './search/replace';

/**
 * Only what works is named: without ripgrep the built-in editor searches the files, and nothing is replaced in several.
 */
export const search: Record<string, Verb> = {
  find_in_file,
  ...(ripgrep ? { find_in_project, regex_search, replace_text } : {}),
};

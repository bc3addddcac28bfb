// The tree of files, and what is in it: neither asks for anything that the editor knows better than the disk does, so
// the built-in editor tells it (search_files, explore_tree, get_workspace_info), by ignore files that the editor's API
// does not read.

import type { Verb } from '../verbs';

export const project: Record<string, Verb> = {};

// What the editor's languages know of a text: errors, completions, definitions, and how it is formatted. Syntax trees
// the editor does not give away; the built-in editor has those.

import type { Verb } from '../verbs';
import { get_completions } from './analysis/completions';
import { goto_definition } from './analysis/definition';
import { get_errors } from './analysis/errors';
import { format_code } from './analysis/format';

export const analysis: Record<string, Verb> = { get_errors, get_completions, goto_definition, format_code };

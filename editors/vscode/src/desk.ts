// What all verbs and all who watch share.

import type * as vscode from 'vscode';
import type { Doing } from './doing';
import type { Line } from './line';
import type { Roots } from './roots';
import type { Spots } from './spots';
import type { Texts } from './texts';
import type { Voice } from './voice';

export interface Desk {
  readonly roots: Roots;
  readonly texts: Texts;
  readonly spots: Spots;
  readonly voice: Voice;
  readonly line: Line;
  readonly doing: Doing;
  readonly log: vscode.LogOutputChannel;
}

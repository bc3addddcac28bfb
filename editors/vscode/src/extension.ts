// Puts the parts together, and nothing else. All of them end with the context's subscriptions.

import * as vscode from 'vscode';
import { watchChat } from './chat';
import type { Desk } from './desk';
import { Doing } from './doing';
import { watchAnalysis } from './events/analysis';
import { watchProject } from './events/project';
import { watchTexts } from './events/texts';
import { watchWindows } from './events/windows';
import { offerHub } from './hub';
import { Line } from './line';
import { Mirror } from './mirror';
import { showPerson } from './person';
import { Roots } from './roots';
import { showRuns } from './runs';
import { self } from './self';
import { Spots } from './spots';
import { Texts } from './texts';
import { verbs } from './verbs';
import { Voice } from './voice';

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('Prism', { log: true });
  const roots = new Roots();
  const texts = new Texts(roots, log);
  const spots = new Spots();
  const mirror = new Mirror(texts);
  const voice = new Voice(() => mirror.state());
  const line = new Line(self(context));
  const desk: Desk = { roots, texts, spots, voice, line, doing: new Doing(), log };
  context.subscriptions.push(
    log,
    roots,
    texts,
    spots,
    voice,
    line,
    // What becomes of files and repositories is told by the daemon, which watches every granted folder itself: told from here
    // as well, each would come twice.
    watchTexts(desk, mirror),
    watchWindows(desk),
    watchAnalysis(desk),
    watchProject(desk),
    showPerson(desk),
    showRuns(desk),
    watchChat(desk),
    offerHub(desk, context),
  );
  line.start(desk, verbs);
}

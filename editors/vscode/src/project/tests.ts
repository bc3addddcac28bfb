// Shows the outcomes of a test run where the editor shows tests. The view is there once an agent has run some.

import * as vscode from 'vscode';

import type { Base, Findings } from './findings';

let controller: vscode.TestController | undefined;

export function showTests(label: string, found: Findings, base: Base): void {
  const all = (controller ??= vscode.tests.createTestController('prism', 'Prism'));
  const shown = found.toldTests(base).cases.map((one, i) => {
    const uri = one.path === undefined ? undefined : vscode.Uri.file(one.path);
    // Names may come twice.
    return { ...one, item: all.createTestItem(`${i} ${one.name}`, one.name, uri) };
  });
  const items = shown.map(({ item }) => item);
  all.items.replace(items);
  const run = all.createTestRun(new vscode.TestRunRequest(items), label);
  for (const { item, outcome, message, duration_ms: duration } of shown) {
    if (outcome === 'passed') run.passed(item, duration);
    if (outcome === 'failed') run.failed(item, new vscode.TestMessage(message ?? 'it failed'), duration);
    if (outcome === 'ignored') run.skipped(item);
  }
  run.end();
}

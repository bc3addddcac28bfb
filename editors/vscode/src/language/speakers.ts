// Which extensions of this editor serve a language. The editor does not tell whether anybody serves a request: "nothing
// found" and "nobody looked" are the same answer. Who would have looked shows from what extensions say of themselves.

import * as vscode from 'vscode';
import { Refusal } from '../refusal';

interface Manifest {
  readonly main?: string;
  readonly browser?: string;
  readonly activationEvents?: readonly string[];
  readonly contributes?: { readonly languages?: readonly { readonly id?: string }[] };
}

/** Who is best known for a language that the editor itself only colours. */
const KNOWN: Readonly<Record<string, string>> = {
  c: 'llvm-vs-code-extensions.vscode-clangd',
  cpp: 'llvm-vs-code-extensions.vscode-clangd',
  csharp: 'ms-dotnettools.csharp',
  dart: 'dart-code.dart-code',
  go: 'golang.go',
  java: 'redhat.java',
  kotlin: 'fwcd.kotlin',
  lua: 'sumneko.lua',
  php: 'bmewburn.vscode-intelephense-client',
  python: 'ms-python.python or ms-pyright.pyright',
  ruby: 'shopify.ruby-lsp',
  rust: 'rust-lang.rust-analyzer',
  shellscript: 'mads-hartmann.bash-ide-vscode',
  swift: 'swiftlang.swift-vscode',
  toml: 'tamasfe.even-better-toml',
  yaml: 'redhat.vscode-yaml',
  zig: 'ziglang.vscode-zig',
};

/** The extensions that come to life for a language and have code of their own, which grammars and snippets have not. */
export function speakersOf(language: string): readonly vscode.Extension<unknown>[] {
  return vscode.extensions.all.filter((extension) => {
    const manifest = extension.packageJSON as Manifest;
    if (manifest.main === undefined && manifest.browser === undefined) return false;
    const declares = manifest.contributes?.languages?.some(({ id }) => id === language) ?? false;
    return declares || (manifest.activationEvents?.includes(`onLanguage:${language}`) ?? false);
  });
}

/** Says that nobody serves a language, and who would. `what` is what was wanted: "finds definitions". */
export function nobody(language: string, what: string): Refusal {
  const known = KNOWN[language];
  const hint = known ? `install the extension ${known} in it` : 'install an extension for this language in it';
  return new Refusal(
    'unsupported',
    `no extension of this editor ${what} in files of the language "${language}"; ${hint}`,
  );
}

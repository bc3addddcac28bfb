//! What servers are told that we can do. Each line here makes some server speak differently; nothing is promised that is not
//! kept.

use serde_json::{Value, json};

pub(crate) fn all(leaves_watching: bool) -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "window": { "workDoneProgress": true },
        "workspace": {
            "configuration": true,
            "workspaceFolders": true,
            // Edits are only ever taken from the answers to our own questions.
            "applyEdit": false,
            "workspaceEdit": { "documentChanges": true, "resourceOperations": [], "failureHandling": "abort" },
            // Servers that can watch files themselves do so where this is not offered, besides what they are told.
            "didChangeWatchedFiles": { "dynamicRegistration": leaves_watching },
            "diagnostics": { "refreshSupport": true },
            "codeLens": { "refreshSupport": false },
        },
        "textDocument": {
            "synchronization": { "didSave": true, "dynamicRegistration": false },
            "publishDiagnostics": { "versionSupport": true, "relatedInformation": false, "codeDescriptionSupport": false, "dataSupport": true },
            "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": false },
            "completion": {
                "contextSupport": true,
                "completionItem": { "snippetSupport": false, "documentationFormat": ["plaintext", "markdown"], "insertReplaceSupport": false },
                "completionList": { "itemDefaults": [] },
            },
            "definition": { "linkSupport": false },
            "declaration": { "linkSupport": false },
            "typeDefinition": { "linkSupport": false },
            "implementation": { "linkSupport": false },
            "references": {},
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "formatting": {},
            "rangeFormatting": {},
            "codeLens": {},
            "rename": { "prepareSupport": true },
            "codeAction": {
                "isPreferredSupport": true,
                "disabledSupport": true,
                "dataSupport": true,
                "resolveSupport": { "properties": ["edit"] },
                "codeActionLiteralSupport": {
                    "codeActionKind": { "valueSet": ["quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite", "source", "source.organizeImports"] },
                },
            },
        },
        "experimental": {
            // rust-analyzer's: when all is loaded, and which lenses it need not leave out.
            "serverStatusNotification": true,
            "commands": { "commands": ["rust-analyzer.runSingle", "rust-analyzer.debugSingle", "rust-analyzer.showReferences"] },
        },
    })
}

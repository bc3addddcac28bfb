//! Configs as people have them: one of each way to write such a file that we know of. Real names, invented servers.

/// A config of a surface, byte for byte.
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) surface: &'static str,
    pub(crate) text: &'static str,
}

const fn sample(name: &'static str, surface: &'static str, text: &'static str) -> Sample {
    Sample { name, surface, text }
}

/// Files that can be changed.
pub(crate) const SAMPLES: &[Sample] = &[
    sample(
        "one server",
        "cursor",
        "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]\n    }\n  }\n}\n",
    ),
    sample("no last line end", "cursor", "{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\" }\n  }\n}"),
    sample("an empty object", "cursor", "{}"),
    sample("an empty object and a line end", "cursor", "{}\n"),
    sample("an empty object in two lines", "cursor", "{\n}\n"),
    sample("an empty object with a blank", "cursor", "{ }\n"),
    sample("no servers yet", "cursor", "{\n  \"mcpServers\": {}\n}\n"),
    sample("no servers yet, in two lines", "cursor", "{\n  \"mcpServers\": {\n  }\n}\n"),
    sample("no servers yet, and a comment", "cursor", "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n"),
    sample(
        "tabs",
        "vscode",
        "{\n\t\"servers\": {\n\t\t\"files\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"npx\"\n\t\t}\n\t},\n\t\"inputs\": []\n}\n",
    ),
    sample(
        "four spaces",
        "claude-desktop",
        "{\n    \"globalShortcut\": \"Ctrl+Space\",\n    \"mcpServers\": {\n        \"git\": {\n            \"command\": \"uvx\",\n            \"args\": [\n                \"mcp-server-git\"\n            ]\n        }\n    }\n}\n",
    ),
    sample(
        "windows line ends",
        "vscode",
        "{\r\n  \"servers\": {\r\n    \"files\": {\r\n      \"command\": \"npx\"\r\n    }\r\n  }\r\n}\r\n",
    ),
    sample(
        "windows line ends and a comment at the end of a line",
        "zed",
        "{\r\n  \"theme\": \"One Dark\", // dark\r\n  \"vim_mode\": true // always\r\n}\r\n",
    ),
    sample(
        "windows line ends and none at the end",
        "cursor",
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"url\": \"https://example.com/mcp\"}\r\n\t}\r\n}",
    ),
    sample(
        "a mark at the start",
        "cursor",
        "\u{feff}{\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\" }\n  }\n}\n",
    ),
    sample("a mark and nothing else", "vscode", "\u{feff}{}\r\n"),
    sample(
        "trailing commas",
        "zed",
        "{\n  \"theme\": \"Ayu Dark\",\n  \"context_servers\": {\n    \"files\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"files\",],\n    },\n  },\n}\n",
    ),
    sample(
        "a trailing comma and a comment",
        "zed",
        "{\n  \"context_servers\": {\n    \"files\": { \"command\": \"npx\" }, // the files\n  },\n}\n",
    ),
    sample(
        "a long settings file with comments",
        "zed",
        "// Zed settings\n//\n// For information on how to configure Zed, see the Zed\n// documentation: https://zed.dev/docs/configuring-zed\n{\n  \"ui_font_size\": 16,\n  /* fonts */\n  \"buffer_font_size\": 16, // large\n  \"theme\": {\n    \"mode\": \"system\",\n    \"light\": \"One Light\", // \"quoted\" and // twice\n    \"dark\": \"One Dark\"\n  },\n  // servers go below\n  \"assistant\": { \"version\": \"2\" }\n  // the end\n}\n// really\n",
    ),
    sample(
        "a comment beside the last member",
        "opencode",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"anthropic/claude-sonnet-4-5\" // the best\n}\n",
    ),
    sample("a block comment beside the last member", "opencode", "{\n  \"model\": \"x\" /* one */ /* two */\n}\n"),
    sample(
        "a commented entry at the end",
        "vscode",
        "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\" }\n    // \"b\": { \"command\": \"y\" }\n  }\n}\n",
    ),
    sample("one line", "cursor", "{\"mcpServers\":{\"files\":{\"command\":\"npx\",\"args\":[\"-y\",\"files\"]}}}"),
    sample("one line with blanks", "windsurf", "{ \"mcpServers\": { \"files\": { \"command\": \"npx\" } } }\n"),
    sample("one line and no servers", "windsurf", "{\"mcpServers\": {}}\n"),
    sample(
        "one line of something else",
        "gemini-cli",
        "{\"theme\":\"Dracula\",\"selectedAuthType\":\"oauth-personal\"}\n",
    ),
    sample("one line with a trailing comma", "zed", "{\"vim_mode\": true,}\n"),
    sample(
        "servers on one line in a file of many",
        "cursor",
        "{\n  \"other\": [1, 2, 3],\n  \"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"y\"}}\n}\n",
    ),
    sample(
        "servers in the middle",
        "gemini-cli",
        "{\n  \"selectedAuthType\": \"gemini-api-key\",\n  \"mcpServers\": {\n    \"git\": {\n      \"command\": \"uvx\",\n      \"args\": [\"mcp-server-git\"]\n    },\n    \"github\": {\n      \"httpUrl\": \"https://api.example.com/mcp/\",\n      \"headers\": {\n        \"Authorization\": \"Bearer abc\"\n      },\n      \"timeout\": 5000\n    }\n  },\n  \"theme\": \"Dracula\"\n}\n",
    ),
    sample(
        "the same names further down",
        "claude-code",
        "{\n  \"numStartups\": 42,\n  \"projects\": {\n    \"/home/me/work\": {\n      \"mcpServers\": { \"prism\": { \"command\": \"not-ours\" } },\n      \"history\": []\n    }\n  },\n  \"userID\": \"0123456789abcdef\"\n}\n",
    ),
    sample(
        "claude code's own file",
        "claude-code",
        "{\n  \"numStartups\": 7,\n  \"installMethod\": \"native\",\n  \"mcpServers\": {},\n  \"projects\": {},\n  \"tipsHistory\": {\n    \"new-user-warmup\": 1\n  }\n}",
    ),
    sample("odd indentation", "void", "{\n \"mcpServers\": {\n     \"a\": {\n   \"command\": \"x\" }\n      }\n  }\n"),
    sample(
        "the brace on a line of its own",
        "void",
        "{\n  \"mcpServers\":\n  {\n    \"a\":\n    {\n      \"command\": \"x\"\n    }\n  }\n}\n",
    ),
    sample(
        "escaped names",
        "cursor",
        "{\n  \"mcp\\u0053ervers\": {\n    \"caf\\u00e9\": { \"command\": \"x\" }\n  }\n}\n",
    ),
    sample(
        "letters beyond ascii",
        "claude-desktop",
        "{\n  \"größe\": \"日本語 🦀\",\n  \"mcpServers\": {\n    \"räume\": { \"command\": \"x\", \"args\": [\"é\"] }\n  }\n}\n",
    ),
    sample(
        "blank lines between and after",
        "vscode",
        "\n\n{\n\n  \"servers\": {\n\n    \"a\": { \"command\": \"x\" }\n\n  }\n\n}\n\n\n",
    ),
    sample(
        "blanks at the ends of lines",
        "cursor",
        "{  \n  \"mcpServers\": {  \n    \"a\": { \"command\": \"x\" }  \n  }  \n}  \n",
    ),
    sample(
        "the second version of opencode",
        "opencode",
        "{\n  \"mcp\": {\n    \"servers\": {\n      \"a\": { \"type\": \"local\", \"command\": [\"x\"] },\n    },\n  },\n}\n",
    ),
    sample(
        "the first version of opencode",
        "opencode",
        "{\n  \"mcp\": {\n    \"a\": { \"type\": \"local\", \"command\": [\"x\"], \"enabled\": true }\n  }\n}\n",
    ),
    sample(
        "a comment right behind a brace",
        "zed",
        "{ // settings\n  \"context_servers\": { // servers\n    \"a\": { \"command\": \"x\" }\n  }\n}\n",
    ),
    sample(
        "a comma at the start of a line",
        "vscode",
        "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\" }\n  , \"b\": { \"command\": \"y\" }\n  }\n}\n",
    ),
    sample(
        "codex with tables",
        "codex",
        "model = \"gpt-5\"\napproval_policy = \"on-request\"\n\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\"]\n",
    ),
    sample("codex without servers", "codex", "model = \"o3\"\n"),
    sample("codex without a last line end", "codex", "model = \"o3\"\n\n[tui]\nnotifications = true"),
    sample(
        "codex with windows line ends",
        "codex",
        "model = \"o3\"\r\n\r\n[mcp_servers.files]\r\ncommand = \"npx\"\r\n",
    ),
    sample(
        "codex with comments all over",
        "codex",
        "# my config\nmodel = \"o3\" # the model\n\n# servers\n[mcp_servers.files] # files\ncommand = \"npx\" # node\n# args = []\n\n# the end\n",
    ),
    sample(
        "codex with dotted keys",
        "codex",
        "model = \"o3\"\nmcp_servers.files.command = \"npx\"\nmcp_servers.files.args = [\"-y\"]\n",
    ),
    sample(
        "codex with an inline table",
        "codex",
        "model = \"o3\"\nmcp_servers = { files = { command = \"npx\" }, git = { command = \"uvx\" } }\n\n[tui]\ntheme = \"dark\"\n",
    ),
    sample("codex with an empty inline table", "codex", "mcp_servers = {}\nmodel = \"o3\"\n"),
    sample(
        "codex with keys below one table",
        "codex",
        "[mcp_servers]\nfiles = { command = \"npx\" }\n\n[profiles.fast]\nmodel = \"o4-mini\"\n",
    ),
    sample(
        "codex with arrays of tables",
        "codex",
        "[[hooks.stop]]\ncommand = \"a\"\n\n[[hooks.stop]]\ncommand = \"b\"\n\n[mcp_servers.files]\ncommand = \"npx\"\n\n[mcp_servers.files.env]\nTOKEN = \"t\"\n\n[projects.\"/home/me/a.b\"]\ntrust_level = \"trusted\"\n",
    ),
    sample("codex with blank lines at the end", "codex", "model = \"o3\"\n\n\n\n"),
    sample(
        "codex with many-line texts and dates",
        "codex",
        "developer_instructions = \"\"\"\n[mcp_servers.prism]\nis not a table here\n\"\"\"\nsince = 2026-01-01T00:00:00Z\nratio = 0.5\n",
    ),
];

/// Files that are broken, and where.
pub(crate) const BROKEN: &[(Sample, &str)] = &[
    (sample("a brace is missing", "cursor", "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n"), ":"),
    (sample("a comma is missing", "vscode", "{\n  \"servers\": {}\n  \"inputs\": []\n}\n"), ":2:"),
    (sample("not json at all", "gemini-cli", "theme = dark\n"), ":1:1"),
    (sample("a conflict", "claude-code", "{\n<<<<<<< HEAD\n  \"a\": 1\n=======\n  \"a\": 2\n>>>>>>> x\n}\n"), ":2:1"),
    (sample("a list", "windsurf", "[]\n"), ":1:1"),
    (sample("servers in a list", "cursor", "{\n  \"mcpServers\": []\n}\n"), ":2:3"),
    (sample("servers that are null", "cursor", "{\n  \"mcpServers\": null\n}\n"), ":2:3"),
    (sample("servers twice", "cursor", "{\n  \"mcpServers\": {},\n  \"mcpServers\": {}\n}\n"), ":3:3"),
    (sample("two texts", "zed", "{}\n{}\n"), ":2:1"),
    (sample("broken toml", "codex", "model = \"o3\"\n[mcp_servers\n"), ":2:"),
    (sample("a key twice in toml", "codex", "model = \"o3\"\nmodel = \"o4\"\n"), ":2:"),
    (sample("servers that are a text in toml", "codex", "mcp_servers = \"none\"\n"), ":1:1"),
];

/// Files with hooks that can be changed.
pub(crate) const HOOKS: &[Sample] = &[
    sample("an empty object", "claude-code", "{}\n"),
    sample("an empty object in two lines", "claude-code", "{\n}\n"),
    sample("no hooks", "claude-code", "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n"),
    sample("no hooks yet", "claude-code", "{\n  \"hooks\": {},\n  \"model\": \"opus\"\n}\n"),
    sample("no hooks yet, in two lines", "claude-code", "{\n  \"hooks\": {\n  }\n}\n"),
    sample("an empty list", "claude-code", "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"),
    sample("an empty list in two lines", "claude-code", "{\n  \"hooks\": {\n    \"Stop\": [\n    ]\n  }\n}\n"),
    sample(
        "an empty list and a comment",
        "claude-code",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      // none\n    ]\n  }\n}\n",
    ),
    sample(
        "others' hooks",
        "claude-code",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"matcher\": \"\",\n        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"say done\" }\n        ]\n      }\n    ],\n    \"PreToolUse\": []\n  }\n}\n",
    ),
    sample(
        "others' hooks on one line",
        "claude-code",
        "{ \"hooks\": { \"SessionStart\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"date\" }] }] } }\n",
    ),
    sample(
        "tight",
        "claude-code",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"date\"}]}]}}",
    ),
    sample(
        "a list that begins at its bracket",
        "claude-code",
        "{\n  \"hooks\": {\n    \"Stop\": [{\n      \"hooks\": [{ \"type\": \"command\", \"command\": \"date\" }]\n    }]\n  }\n}\n",
    ),
    sample(
        "comments and trailing commas",
        "claude-code",
        "{\n  // mine\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [] }, // first\n      { \"hooks\": [] }, // last\n    ],\n  },\n}\n",
    ),
    sample(
        "tabs and windows line ends",
        "claude-code",
        "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{ \"hooks\": [] }\r\n\t\t]\r\n\t}\r\n}\r\n",
    ),
    sample("a mark at the start", "claude-code", "\u{feff}{\n  \"model\": \"opus\"\n}"),
    sample("no hooks", "codex", "{}\n"),
    sample(
        "others' hooks",
        "codex",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"uvx codhc\",\n            \"timeout\": 30\n          }\n        ]\n      }\n    ]\n  }\n}\n",
    ),
    sample("no hooks yet", "cursor", "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n"),
    sample("a version and nothing else", "cursor", "{\"version\": 1}\n"),
    sample(
        "others' hooks",
        "cursor",
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"./audit.sh\" }],\n    \"afterFileEdit\": [\n      { \"command\": \"./format.sh\" }\n    ]\n  }\n}\n",
    ),
];

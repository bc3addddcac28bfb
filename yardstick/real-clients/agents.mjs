// The agents: what each has to be told so that it talks to a model on loopback, and how it is asked one thing. What is
// said here is what a person with an account would never see; of Prism nothing is said, that is `prism install`'s.

const QUESTION = 'Let the echo tool say something.';

// `config` is the file that `prism install` writes into, `own` what its owner has in it before.
export const AGENTS = {
  'claude-code': {
    program: 'claude',
    config: '.claude.json',
    own: () => undefined,
    // A tool that nobody has allowed is not called where there is nobody to ask.
    words: ['-p', QUESTION, '--output-format', 'json', '--allowedTools', 'mcp__prism__demo__echo'],
    env: (model) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: 'no-key',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_TELEMETRY: '1',
    }),
    says: (stdout) => JSON.parse(stdout).result,
  },
  codex: {
    program: 'codex',
    config: '.codex/config.toml',
    own: (model) => `# mine
model = "yard"
model_provider = "yard"

[model_providers.yard]
name = "yard"
base_url = "${model}/v1"
wire_api = "responses"
env_key = "YARD_KEY"
`,
    words: ['exec', '--skip-git-repo-check', '--json', '--dangerously-bypass-approvals-and-sandbox', QUESTION],
    env: () => ({ YARD_KEY: 'no-key' }),
    says: (stdout) => lines(stdout).map(({ item }) => item).findLast((item) => item?.type === 'agent_message')?.text,
  },
  opencode: {
    program: 'opencode',
    config: '.config/opencode/opencode.json',
    own: (model) => `{
  // mine
  "$schema": "https://opencode.ai/config.json",
  "model": "yard/yard",
  "small_model": "yard/yard",
  "autoupdate": false,
  "share": "disabled",
  "provider": {
    "yard": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": "${model}/v1", "apiKey": "no-key" },
      "models": { "yard": { "tool_call": true } },
    },
  },
}
`,
    words: ['run', '--format', 'json', QUESTION],
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_DEFAULT_PLUGINS: '1' }),
    says: (stdout) => lines(stdout).findLast((event) => event.type === 'text')?.part.text,
  },
};

function lines(stdout) {
  return stdout.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
}

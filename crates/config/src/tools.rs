//! What may be called at a destination: rules for its tools, and what becomes of a tool that is no longer what it was.

use prism_core::policy::ToolRules;

/// `[destination.NAME.tools]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsConfig {
    /// `None`: there is no such table.
    pub rules: Option<ToolRules>,
    pub pin: PinPolicy,
}

/// What happens when a tool's definition is another than when it was first used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PinPolicy {
    /// A person is asked before the next call of it.
    Ask,
    /// It is said in the log, the audit and the status.
    #[default]
    Warn,
    Off,
}

#[cfg(test)]
mod tests {
    use prism_core::policy::{DefaultRule, NameGlob, ToolRule};

    use super::*;
    use crate::{
        DestinationConfig, Env, Flags, raw::RawConfig, raw::keys::TOOLS_KEYS, tests::config_in, tests::keys_in,
    };

    const DESTINATION: &str = "[destination.files]\ncommand = [\"x\"]\n";

    fn read(text: &str) -> Result<ToolsConfig, String> {
        let config = config_in(&format!("{DESTINATION}{text}"), &Env::default(), &Flags::default());
        config.map(|config| config.destinations["files"].tools.clone()).map_err(|error| error.to_string())
    }

    fn rule(tool: &str, arguments: &[(&str, &str)]) -> ToolRule {
        let glob = |text| NameGlob::new(text).unwrap();
        ToolRule::new(glob(tool), arguments.iter().map(|(path, text)| ((*path).into(), glob(text))).collect())
    }

    #[test]
    fn every_setting_has_its_place() {
        let text = r#"
            [destination.files.tools]
            allow = ["read_*", { tool = "query", arguments = { sql = "select *", "a.b" = "x" } }]
            confirm = ["write_*"]
            deny = ["delete_*"]
            otherwise = "confirm"
            pin = "warn"
        "#;
        let rules = ToolRules {
            allow: vec![rule("read_*", &[]), rule("query", &[("a.b", "x"), ("sql", "select *")])],
            confirm: vec![rule("write_*", &[])],
            deny: vec![rule("delete_*", &[])],
            otherwise: DefaultRule::Confirm,
        };
        assert_eq!(read(text), Ok(ToolsConfig { rules: Some(rules), pin: PinPolicy::Warn }));
    }

    #[test]
    fn what_is_not_said_depends_on_what_is() {
        assert_eq!(read(""), Ok(DestinationConfig::stdio("x", Vec::new()).tools));
        assert_eq!(read("").unwrap().pin, PinPolicy::Warn);
        let with = |text: &str| read(&format!("[destination.files.tools]\n{text}")).unwrap();
        let otherwise = |text: &str| with(text).rules.unwrap().otherwise;
        assert_eq!(with("").pin, PinPolicy::Ask);
        assert_eq!(with("pin = \"off\"").pin, PinPolicy::Off);
        assert_eq!(otherwise("deny = [\"x\"]"), DefaultRule::Allow);
        // Who says what is allowed means nothing else.
        assert_eq!(otherwise("allow = [\"x\"]"), DefaultRule::Deny);
        assert_eq!(otherwise("allow = []"), DefaultRule::Deny);
        assert_eq!(otherwise("allow = [\"x\"]\notherwise = \"allow\""), DefaultRule::Allow);
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        for (text, shown, fix) in [
            ("deny = \"x\"", "destination.files.tools.deny is \"x\", not a list of rules", "deny = [\"delete_*\"]"),
            ("deny = [\"a\",\n  7]", "  7]", "deny = [\"delete_*\"]"),
            ("deny = [\"\"]", "a pattern is not empty", "deny ="),
            ("deny = [{ arguments = { a = \"b\" } }]", "does not say of which tool", "tool = \"*\""),
            ("deny = [{ tool = \"a\", argument = { a = \"b\" } }]", "has \"argument\"", "arguments"),
            ("deny = [{ tool = \"a\", arguments = { a = 1 } }]", "arguments.a is 1", "in quotes"),
            ("otherwise = \"no\"", "is \"no\", not", "otherwise = \"deny\""),
            ("pin = true", "is true, not", "pin = \"ask\""),
            ("alow = []", "unknown key \"alow\"", "did you mean \"allow\"?"),
        ] {
            let said = read(&format!("[destination.files.tools]\n{text}")).unwrap_err();
            assert!(said.contains(shown) && said.contains(fix), "{said}");
        }
    }

    #[test]
    fn the_list_of_keys_is_what_serde_accepts() {
        let error = toml::from_str::<RawConfig>("destination.x.tools.zzz = 1").unwrap_err();
        assert_eq!(keys_in(error.message()), TOOLS_KEYS);
    }
}

use std::collections::BTreeSet;

use super::*;

//
#[test]
fn every_row_of_the_policy_has_a_verb_and_every_verb_a_row() {
    let rows: Vec<_> = VerbSpec::all().map(|action| action.verb).collect();
    let verbs: Vec<_> = all().map(|verb| verb.name).collect();
    assert_eq!(verbs, rows);
}

//
#[test]
fn every_path_of_the_policy_that_a_verb_takes_is_a_string() {
    for verb in all() {
        let action = verb.action().unwrap();
        let paths = action.paths.iter().filter_map(|path| verb.arg(path));
        assert!(paths.clone().all(|arg| arg.kind == ArgKind::Text), "{}", verb.name);
        for arg in verb.args.iter().filter(|arg| ["path", "new_path", "cwd"].contains(&arg.name)) {
            assert!(
                action.paths.contains(&arg.name),
                "{}: the policy does not know that {} is a path",
                verb.name,
                arg.name
            );
        }
    }
}

#[test]
fn no_verb_takes_an_argument_twice_and_each_says_what_it_is() {
    for verb in all() {
        let names: BTreeSet<_> = verb.args.iter().map(|arg| arg.name).collect();
        assert_eq!(names.len(), verb.args.len(), "{}", verb.name);
        let sentences = verb.args.iter().map(|arg| arg.about).chain([verb.about]);
        for sentence in sentences {
            assert!(sentence.ends_with('.') && sentence.len() > 8, "{}: {sentence:?}", verb.name);
        }
    }
}

#[test]
fn an_example_has_the_arguments_that_are_needed_and_no_other() {
    for verb in all() {
        let example: Map<String, Value> = serde_json::from_str(verb.example).unwrap();
        for name in example.keys() {
            assert!(verb.arg(name).is_some(), "{}: {name}", verb.name);
        }
        for arg in verb.args.iter().filter(|arg| arg.is_required) {
            assert!(example.contains_key(arg.name), "{}: {}", verb.name, arg.name);
        }
    }
}

#[test]
fn a_schema_has_the_arguments_and_lets_no_other_in() {
    let schema = named("goto_definition").unwrap().schema();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["path", "position"]));
    assert_eq!(schema["properties"]["position"]["required"], json!(["line", "character"]));
    assert_eq!(schema["properties"]["path"]["type"], "string");
    assert!(schema["properties"]["kind"]["enum"].as_array().unwrap().contains(&json!("references")));
    assert_eq!(named("get_buffers").unwrap().schema()["properties"], json!({}));
}

#[test]
fn hints_are_those_of_the_policy() {
    let hints = |name| (named(name).unwrap().is_read_only(), named(name).unwrap().is_destructive());
    assert_eq!(hints("open_file"), (true, false));
    assert_eq!(hints("edit_buffer"), (false, false));
    assert_eq!(hints("run_tests"), (false, true));
    assert_eq!(hints("delete_file"), (false, true));
    assert!(named("fly").is_none());
}

#[test]
fn the_page_about_the_editor_has_every_verb_with_its_arguments_and_example() {
    const PAGE: &str = include_str!("../../../../docs/editor.md");
    for verb in all() {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{}`", verb.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in docs/editor.md", verb.name));
        assert!(row.contains(&format!("`{}`", verb.example)), "{}: {}", verb.name, verb.example);
        for arg in verb.args {
            let is_it = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_') == arg.name;
            assert!(row.split_whitespace().any(is_it), "{}: {}", verb.name, arg.name);
        }
    }
}

//! Each language by its case (`cases/`): a text with the outline that it has, and a broken one with its errors.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

pub(super) const ALL: [SourceLanguage; 12] = [
    SourceLanguage::Rust,
    SourceLanguage::Python,
    SourceLanguage::TypeScript,
    SourceLanguage::Tsx,
    SourceLanguage::JavaScript,
    SourceLanguage::Go,
    SourceLanguage::C,
    SourceLanguage::Cpp,
    SourceLanguage::Bash,
    SourceLanguage::Json,
    SourceLanguage::Toml,
    SourceLanguage::Markdown,
];

const CASES: [(SourceLanguage, &str); 12] = [
    (SourceLanguage::Rust, include_str!("cases/rust.txt")),
    (SourceLanguage::Python, include_str!("cases/python.txt")),
    (SourceLanguage::TypeScript, include_str!("cases/typescript.txt")),
    (SourceLanguage::Tsx, include_str!("cases/tsx.txt")),
    (SourceLanguage::JavaScript, include_str!("cases/javascript.txt")),
    (SourceLanguage::Go, include_str!("cases/go.txt")),
    (SourceLanguage::C, include_str!("cases/c.txt")),
    (SourceLanguage::Cpp, include_str!("cases/cpp.txt")),
    (SourceLanguage::Bash, include_str!("cases/bash.txt")),
    (SourceLanguage::Json, include_str!("cases/json.txt")),
    (SourceLanguage::Toml, include_str!("cases/toml.txt")),
    (SourceLanguage::Markdown, include_str!("cases/markdown.txt")),
];

/// Returns the four parts of a case: a text, its outline, a broken text, its errors.
fn parts(case: &str) -> [&str; 4] {
    let mut parts = case.split("=== ").skip(1).map(|part| part.split_once('\n').unwrap().1);
    [(); 4].map(|()| parts.next().unwrap())
}

fn analyzed(text: &str, language: SourceLanguage, wish: Option<&TreeRequest>) -> Value {
    serde_json::to_value(analysis(text, language, wish, &Cancellation::never()).unwrap()).unwrap()
}

fn told(range: &Value) -> String {
    let place = |end: &str| format!("{}:{}", range[end]["line"], range[end]["character"]);
    format!("{}-{}", place("start"), place("end"))
}

fn told_outline(symbols: &Value, depth: usize) -> String {
    let line = |symbol: &Value| {
        let (kind, name) = (symbol["kind"].as_str().unwrap(), symbol["name"].as_str().unwrap());
        let own = format!("{}{kind} {name} {}\n", "  ".repeat(depth), told(&symbol["range"]));
        own + &told_outline(&symbol["children"], depth + 1)
    };
    symbols.as_array().unwrap().iter().map(line).collect()
}

fn told_errors(errors: &Value) -> String {
    let line = |error: &Value| format!("{} {}\n", told(&error["range"]), error["message"].as_str().unwrap());
    errors.as_array().unwrap().iter().map(line).collect()
}

//
#[test]
fn each_language_has_an_outline() {
    for (language, case) in CASES {
        let [text, outline, _, _] = parts(case);
        let answer = analyzed(text, language, None);
        assert_eq!(told_outline(&answer["outline"], 0), outline, "{language:?}");
        assert_eq!(told_errors(&answer["errors"]), "", "{language:?}");
        assert_eq!((&answer["has_errors"], &answer["is_complete"]), (&json!(false), &json!(true)));
        assert_eq!(answer["language"], language.id());
    }
}

#[test]
fn each_language_says_where_a_text_is_broken() {
    for (language, case) in CASES {
        let [_, _, broken, errors] = parts(case);
        let answer = analyzed(broken, language, None);
        assert_eq!(told_errors(&answer["errors"]), errors, "{language:?}");
        assert_eq!(answer["has_errors"], !errors.is_empty());
    }
}

#[test]
fn a_tree_is_shown_as_far_as_was_asked() {
    let text = "fn a() {}\nfn b(x: u8) -> u8 { x + 1 }\n";
    let tree = |depth, limit, range| {
        let answer = analyzed(text, SourceLanguage::Rust, Some(&TreeRequest { depth, limit, range }));
        (answer["tree"].clone(), answer["is_complete"].as_bool().unwrap())
    };
    let (whole, is_complete) = tree(64, 5_000, None);
    assert!(is_complete);
    assert_eq!(whole["children"].as_array().unwrap().len(), 2);
    assert_eq!(
        whole["children"][0]["children"][0],
        json!({
            "kind": "identifier", "field": "name", "text": "a",
            "range": { "start": { "line": 0, "character": 3 }, "end": { "line": 0, "character": 4 } },
        })
    );
    let (shallow, is_complete) = tree(1, 5_000, None);
    assert!(!is_complete && shallow["children"][0].get("children").is_none());
    let (short, is_complete) = tree(64, 3, None);
    assert!(!is_complete);
    assert_eq!(short["children"].as_array().unwrap().len(), 1);
    let (second, is_complete) = tree(64, 5_000, Some(((1, 5), (1, 6))));
    assert!(is_complete);
    assert_eq!(second["children"].as_array().unwrap().len(), 1);
    assert_eq!(second["children"][0]["range"]["start"]["line"], 1);
}

#[test]
fn a_range_that_is_none_is_refused() {
    for range in [((9, 0), (9, 0)), ((0, 5), (0, 2))] {
        let wish = TreeRequest { depth: 1, limit: 1, range: Some(range) };
        let refusal = analysis("fn a() {}\n", SourceLanguage::Rust, Some(&wish), &Cancellation::never()).unwrap_err();
        assert_eq!(refusal.code, Code::BadArguments);
    }
}

#[test]
fn data_that_nests_without_end_is_cut() {
    let text = "{\"a\":".repeat(50_000);
    let answer = analyzed(&text, SourceLanguage::Json, Some(&TreeRequest { depth: 64, limit: 5_000, range: None }));
    assert_eq!(answer["is_complete"], false);
    let many = format!("{{{}\"z\":1}}", "\"a\":1,".repeat(20_000));
    let answer = analyzed(&many, SourceLanguage::Json, None);
    assert_eq!((&answer["is_complete"], &answer["has_errors"]), (&json!(false), &json!(false)));
    assert_eq!(answer["outline"].as_array().unwrap().len(), outline::MAX_SYMBOLS);
}

#[test]
fn work_that_nobody_waits_for_ends() {
    let text = "fn a() { b(c, d); }\n".repeat(200_000);
    let began = Instant::now();
    assert!(analysis(&text, SourceLanguage::Rust, None, &Cancellation::at_once()).is_err());
    assert!(began.elapsed() < parse::MAX_TIME / 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is cut out of a text, or put into it, nothing panics, and every range lies within the text.
    #[test]
    fn no_text_is_too_broken(which in 0..CASES.len(), cut in any::<[prop::sample::Index; 2]>(), put in "\\PC{0,12}|[{}()\\[\\]\"'`\\\\\r\n\t ]{0,40}") {
        let (language, case) = CASES[which];
        let text = parts(case)[0];
        let letters: Vec<char> = text.chars().collect();
        let mut ends = cut.map(|at| at.index(letters.len() + 1));
        ends.sort_unstable();
        let text: String = letters[..ends[0]].iter().copied().chain(put.chars()).chain(letters[ends[1]..].iter().copied()).collect();
        let answer = analyzed(&text, language, Some(&TreeRequest { depth: 64, limit: 5_000, range: None }));
        let lines: Vec<u64> = TextLines::of(&text).iter().map(|line| line.encode_utf16().count() as u64).collect();
        check_ranges(&answer, &lines)?;
    }
}

fn check_ranges(value: &Value, lines: &[u64]) -> Result<(), TestCaseError> {
    match value {
        Value::Object(members) => {
            if let (Some(line), Some(character)) = (members.get("line"), members.get("character")) {
                let length = usize::try_from(line.as_u64().unwrap()).ok().and_then(|line| lines.get(line)).copied();
                prop_assert!(length.is_some_and(|length| character.as_u64().unwrap() <= length), "{value} is outside");
            }
            members.values().try_for_each(|value| check_ranges(value, lines))
        }
        Value::Array(values) => values.iter().try_for_each(|value| check_ranges(value, lines)),
        _ => Ok(()),
    }
}

#[test]
fn how_long_five_thousand_lines_take() {
    let [text, ..] = parts(CASES[0].1);
    let text = text.repeat(5_000 / text.lines().count() + 1);
    let mut times: Vec<_> = (0..5)
        .map(|_| {
            let began = Instant::now();
            analyzed(&text, SourceLanguage::Rust, None);
            began.elapsed()
        })
        .collect();
    times.sort();
    println!("{} lines, {} bytes: median {:?}, worst {:?}", text.lines().count(), text.len(), times[2], times[4]);
    // Far from where a text is given up, however busy the machine is.
    assert!(times[2] < parse::MAX_TIME / 2);
}

//! What holds for any JSON, and for any text.

use proptest::prelude::*;

use super::*;

/// JSON of which nothing is known, often in the shapes that are looked for.
fn json() -> impl Strategy<Value = String> {
    let word =
        proptest::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()).prop_map(|word| format!("\"{word}\""));
    let number =
        proptest::sample::select(&["-32602", "-32002", "-32021", "-32042", "-32050", "1.0", "1e400", "-0"][..]);
    let leaf = prop_oneof![
        4 => word.clone(),
        1 => number.prop_map(str::to_owned),
        1 => proptest::sample::select(&["null", "true", "{}", "[]", r#""\ud800""#, r#""{}""#][..]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        let member = (word.clone(), inner.clone()).prop_map(|(name, value)| format!("{name}: {value}"));
        prop_oneof![
            3 => proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(" ,"))),
            1 => proptest::collection::vec(inner, 0..4).prop_map(|items| format!("[ {} ]", items.join(","))),
        ]
    })
}

/// Everything the module can be asked about one text.
fn everything(text: &str) -> Vec<String> {
    let mut told = Vec::new();
    for revision in Revision::ALL {
        for method in Method::all() {
            told.extend(Era::ALL.into_iter().filter_map(|era| result_for(revision, era, method, text)));
            told.extend(question_for(revision, method, text).ok().flatten());
            told.extend(question_to_legacy(revision, method, text, "e").ok().flatten());
            told.extend(error_to_legacy(method, Some("uri"), text));
        }
    }
    told.extend(question_to_modern(text));
    told.extend(error_to_modern(text));
    told.extend(url_elicitations(text).into_iter().flatten());
    told
}

/// Templates in which `@` stands for members that are nobody's business, and who asks for a change in each.
fn told_around(carried: &str) -> Vec<(String, Option<String>)> {
    let fill = |template: &str| template.replace('@', carried);
    let result = |era, method, template: &str| {
        let text = fill(template);
        let told = result_for(V2024_11_05, era, method, &text);
        (text, told)
    };
    let question = |revision, method, template: &str| {
        let text = fill(template);
        let told = question_for(revision, method, &text).unwrap();
        (text, told)
    };
    let other = |edit: fn(&str) -> Option<String>, template: &str| {
        let text = fill(template);
        let told = edit(&text);
        (text, told)
    };
    vec![
        result(
            Era::Modern,
            Method::Complete,
            r#"{@,"resultType":"complete","_meta":{@,"io.modelcontextprotocol/serverInfo":{}}}"#,
        ),
        result(Era::Legacy, Method::ToolsList, r#"{@,"tools":[{@,"outputSchema":{},"inputSchema":{@}},{@},[{@}]]}"#),
        result(Era::Legacy, Method::ToolsList, r#"{"tools":[{"execution":{@,"taskSupport":1},@}],@}"#),
        result(
            Era::Legacy,
            Method::ToolsCall,
            r#"{@,"content":[{@},{"type":"audio","data":"",@}],"structuredContent":{},@}"#,
        ),
        result(
            Era::Legacy,
            Method::PromptsGet,
            r#"{@,"messages":[{@,"content":{"type":"resource_link","uri":"u:","_meta":{@}}}]}"#,
        ),
        question(V2025_11_25, Method::RootsList, r#"{@,"task":{},"_meta":{@}}"#),
        question(V2025_03_26, Method::Sample, r#"{@,"messages":[{@,"role":"user","content":[{@},{@}]},{@}]}"#),
        question(
            V2025_06_18,
            Method::Elicit,
            r#"{@,"mode":"form","requestedSchema":{@,"properties":{"a":{@,"type":"string","oneOf":[]},"b":{@}}}}"#,
        ),
        other(question_to_modern, r#"{@,"elicitationId":"e","_meta":{@,"progressToken":1}}"#),
        other(error_to_modern, r#"{@,"code":-32002,"data":{@}}"#),
        other(error_to_modern, r#"{@,"code":-32050,"data":{@}}"#),
        other(
            |error| error_to_legacy(Method::ResourcesRead, Some("u:"), error),
            r#"{@,"code":-32602,"data":{@,"uri":"u:"}}"#,
        ),
    ]
}

/// A member that a reader would not write the same way again.
fn carried() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(&[r#""k""#, r#""\u006b""#, r#""\/""#, r#""\ud800""#, r#""""#, r#""é""#][..]);
    let value = proptest::sample::select(
        &["1.0", "1e400", "-0", "1E+2", "123456789012345678901234567890", r#""\u0041\/\ud800""#, "null"][..],
    );
    let nested = (value, any::<u8>()).prop_map(|(value, shape)| match shape % 3 {
        0 => value.to_owned(),
        1 => format!("[ {value},\t{value} ]"),
        _ => format!(r#"{{ "b" : {value}, "a":{value}, "a": [] }}"#),
    });
    (name, nested).prop_map(|(name, value)| format!("{name}:{value}"))
}

proptest! {
    #[test]
    fn any_json_is_told_as_json(text in json()) {
        for told in everything(&text) {
            prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(&told).is_ok(), "{} -> {}", text, told);
        }
    }

    #[test]
    fn any_text_is_no_danger(text in "[ -~é\u{2028}\n]{0,40}", cut in 0..40usize, whole in json()) {
        everything(&text);
        everything(whole.get(..cut).unwrap_or_default());
    }

    #[test]
    fn what_was_told_once_is_not_told_differently_again(text in json()) {
        for revision in Revision::ALL {
            for method in [Method::ToolsList, Method::ToolsCall, Method::PromptsGet, Method::Ping] {
                for era in Era::ALL {
                    let told = result_for(revision, era, method, &text).unwrap_or_else(|| text.clone());
                    prop_assert_eq!(result_for(revision, era, method, &told), None, "{} -> {}", text, told);
                }
            }
            for method in [Method::Sample, Method::Elicit, Method::RootsList] {
                if let Ok(Some(told)) = question_for(revision, method, &text) {
                    prop_assert_eq!(question_for(revision, method, &told), Ok(None), "{} -> {}", text, told);
                }
            }
        }
    }

    #[test]
    fn what_is_carried_along_keeps_its_text(members in proptest::collection::vec(carried(), 1..4)) {
        let carried = members.join(",");
        for (text, told) in told_around(&carried) {
            let told = told.unwrap_or_default();
            prop_assert_eq!(told.matches(&carried).count(), text.matches(&carried).count(), "{} -> {}", text, told);
        }
    }
}

mod any;

use super::*;
use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};

/// What a table says of a text that is to stay as it is.
const SAME: &str = "=";

fn shown(told: Option<String>) -> String {
    told.unwrap_or_else(|| SAME.to_owned())
}

/// One result, as each revision from the oldest to the newest is told it.
fn check_result(era: Era, method: Method, result: &str, told: [&str; 4]) {
    for (revision, told) in Revision::ALL.into_iter().zip(told) {
        assert_eq!(shown(result_for(revision, era, method, result)), told, "{era:?} {revision:?} {result}");
    }
}

fn check_question(method: Method, params: &str, told: [Result<&str, &str>; 4]) {
    for (revision, told) in Revision::ALL.into_iter().zip(told) {
        let asked = question_for(revision, method, params).map(shown);
        assert_eq!(asked.as_deref().map_err(|why| *why), told, "{revision:?} {params}");
    }
}

/// A text that holds the JSON, as a block.
fn copy(json: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(json))
}

// checks 49
#[test]
fn no_legacy_session_sees_what_only_the_modern_era_has() {
    let info = r#""io.modelcontextprotocol/serverInfo":{"name":"s"}"#;
    for method in Method::all() {
        for (result, told) in [
            (r#"{"resultType":"complete"}"#.to_owned(), "{}"),
            (format!(r#"{{"resultType":"complete","_meta":{{{info}}}}}"#), "{}"),
            (r#"{"a":1.0,"ttlMs":5,"b":[ 1 ],"cacheScope":"public"}"#.to_owned(), r#"{"a":1.0,"b":[ 1 ]}"#),
            (format!(r#"{{"_meta":{{"x/y":1e2,{info},"z":2}}}}"#), r#"{"_meta":{"x/y":1e2,"z":2}}"#),
            (r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"x":1}"#.to_owned(), r#"{"x":1}"#),
            (r#"{"result\u0054ype":"complete","x":"\u0041"}"#.to_owned(), r#"{"x":"\u0041"}"#),
            // Not ours: an empty `_meta` that came so, and the same names further in.
            (r#"{"_meta":{},"a":{"resultType":1,"ttlMs":2}}"#.to_owned(), SAME),
            (r#"{"_meta":5}"#.to_owned(), SAME),
        ] {
            check_result(Era::Modern, method, &result, [told; 4]);
            check_result(Era::Legacy, method, &result, [SAME; 4]);
        }
    }
}

// checks 53
#[test]
fn an_output_schema_is_for_who_can_read_what_it_describes() {
    let list = |tool: &str| format!(r#"{{"tools":[{{"name":"a"}},{tool}],"nextCursor":"\u0031"}}"#);
    let bare = list(r#"{"name":"b","inputSchema":{"x-mcp-header":"H"}}"#);
    for (schema, from_modern) in [
        (r#"{"properties":{},"type":"object"}"#, true),
        (r#"{"type":"array"}"#, false),
        (r#"{"anyOf":[]}"#, false),
        (r#"{"type":["object"]}"#, false),
        ("true", false),
    ] {
        let tools = list(&format!(r#"{{"name":"b","outputSchema":{schema},"inputSchema":{{"x-mcp-header":"H"}}}}"#));
        let newer = if from_modern { SAME } else { &bare };
        check_result(Era::Legacy, Method::ToolsList, &tools, [&bare, &bare, SAME, SAME]);
        check_result(Era::Modern, Method::ToolsList, &tools, [&bare, &bare, newer, newer]);
        // A legacy server's is not judged, even if there is something else to change.
        let task = tools.replace(r#"{"name":"a"}"#, r#"{"name":"a","execution":{"taskSupport":"optional"}}"#);
        check_result(Era::Legacy, Method::ToolsList, &task, [&bare, &bare, &tools, &tools]);
    }
}

#[test]
fn no_tool_offers_to_run_as_a_task() {
    let told = |tools: &str, told: &str| {
        let told = if told == SAME { SAME.to_owned() } else { format!(r#"{{"tools":[{told}]}}"#) };
        for era in Era::ALL {
            check_result(era, Method::ToolsList, &format!(r#"{{"tools":[{tools}]}}"#), [&told; 4]);
        }
    };
    told(r#"{"name":"a","execution":{"taskSupport":"optional"},"x":1.0}"#, r#"{"name":"a","x":1.0}"#);
    told(r#"{"execution":{"taskSupport":"required","y":1.0}},{"z": 1}"#, r#"{"execution":{"y":1.0}},{"z": 1}"#);
    told(r#"{"execution":{}}"#, SAME);
    told(r#"{"execution":"taskSupport"}"#, SAME);
    told(r#"{"description":"\"taskSupport\""},{"taskSupport":1}"#, SAME);
}

// checks 53
#[test]
fn structure_that_cannot_be_read_is_told_as_text() {
    let result = |content: &str, structure: &str| {
        format!(r#"{{"content":{content},"structuredContent":{structure},"isError":false}}"#)
    };
    let text = |content: &str| format!(r#"{{"content":{content},"isError":false}}"#);
    for (structure, object) in
        [(r#"{"a": 1.0}"#, true), ("[1e400,\"\\u00e9\\\"\"]", false), ("17", false), ("\"s\"", false), ("false", false)]
    {
        let copied = text(&format!("[{}]", copy(structure)));
        let whole = result("[]", structure);
        check_result(Era::Legacy, Method::ToolsCall, &whole, [&copied, &copied, SAME, SAME]);
        let newer = if object { SAME } else { &copied };
        check_result(Era::Modern, Method::ToolsCall, &whole, [&copied, &copied, newer, newer]);
        // The copy that is there already is enough.
        let held = format!(r#"[ {{"text":{},"type":"text"}} ]"#, quoted(&format!(" {structure}\n")));
        check_result(
            Era::Legacy,
            Method::ToolsCall,
            &result(&held, structure),
            [&text(&held), &text(&held), SAME, SAME],
        );
    }
}

#[test]
fn a_text_copy_is_known_by_what_it_says() {
    let told = |content: &str, structure: &str| {
        let result = format!(r#"{{"content":{content},"structuredContent":{structure}}}"#);
        shown(result_for(V2025_03_26, Era::Legacy, Method::ToolsCall, &result))
    };
    let text = |text: &str| format!(r#"[{{"type":"text","text":{}}}]"#, quoted(text));
    let structure = r#"{"a":1,"b":["é"]}"#;
    let without = |content: &str| format!(r#"{{"content":{content}}}"#);
    for same in ["{\n  \"b\": [\"\\u00e9\"],\n  \"a\": 1\n}", structure] {
        assert_eq!(told(&text(same), structure), without(&text(same)), "{same}");
    }
    for other in [r#"{"a":2,"b":["é"]}"#, "{", "done", "é", "", r#"{"a":1}"#] {
        let both = format!(r#"[{{"type":"text","text":{}}},{}]"#, quoted(other), copy(structure));
        assert_eq!(told(&text(other), structure), without(&both), "{other}");
    }
    // A number out of range has no value to compare, only its text.
    assert_eq!(told(&text("[1e400]"), "[1e400]"), without(&text("[1e400]")));
    assert_eq!(told(&text("[2e400]"), "[1e400]"), without(&format!("[{},{}]", copy("[2e400]"), copy("[1e400]"))));
    // Text within another kind of block is none that the model reads.
    let image = r#"[{"type":"image","text":"[1]"}]"#;
    assert_eq!(told(image, "[1]"), without(&format!("{},{}]", image.trim_end_matches(']'), copy("[1]"))));
}

#[test]
fn structure_without_a_place_for_its_copy() {
    let told = |era, result: &str| shown(result_for(V2025_03_26, era, Method::ToolsCall, result));
    let made = format!(r#"{{"content":[{}]}}"#, copy("{}"));
    assert_eq!(told(Era::Legacy, r#"{"structuredContent":{}}"#), made);
    assert_eq!(told(Era::Legacy, r#"{"content":null,"structuredContent":{}}"#), made);
    assert_eq!(told(Era::Legacy, r#"{"content":"x","structuredContent":{}}"#), SAME);
    // `null` is a value in the modern era only.
    assert_eq!(told(Era::Legacy, r#"{"content":[],"structuredContent":null}"#), r#"{"content":[]}"#);
    let null = format!(r#"{{"content":[{}]}}"#, copy("null"));
    assert_eq!(told(Era::Modern, r#"{"content":[],"structuredContent":null}"#), null);
}

// checks 52
#[test]
fn no_client_gets_a_block_that_its_revision_does_not_know() {
    let audio = r#"{"type":"audio","data":"AA\u003d=","mimeType":"audio/wav","annotations":{"priority":1.0}}"#;
    let sound = |n: usize| {
        format!(
            r#"{{"type":"resource","annotations":{{"priority":1.0}},"resource":{{"uri":"audio://prism/{n}","mimeType":"audio/wav","blob":"AA\u003d="}}}}"#
        )
    };
    let link = r#"{"type":"resource_link","uri":"file:///a%20b","name":"n\u00e9\"","annotations":{"priority":1.0}}"#;
    let linked = r#"{"type":"text","annotations":{"priority":1.0},"text":"n\u00e9\": file:///a%20b"}"#;
    let text = r#"{"type":"text", "text":"t"}"#;
    for era in Era::ALL {
        let call = |blocks: &[&str]| format!(r#"{{"content":{},"isError":true}}"#, array(blocks));
        let whole = call(&[audio, text, link, audio]);
        let oldest = call(&[&sound(1), text, linked, &sound(2)]);
        let older = call(&[audio, text, linked, audio]);
        check_result(era, Method::ToolsCall, &whole, [&oldest, &older, SAME, SAME]);

        let prompt = |blocks: &[&str]| {
            let messages: Vec<_> =
                blocks.iter().map(|b| format!(r#"{{"role":"user","content":{b},"x":1.0}}"#)).collect();
            format!(r#"{{"description":"d","messages":{}}}"#, array(&messages))
        };
        let whole = prompt(&[text, audio, link, audio, &array(&[link])]);
        let oldest = prompt(&[text, &sound(1), linked, &sound(2), &array(&[linked])]);
        let older = prompt(&[text, audio, linked, audio, &array(&[linked])]);
        check_result(era, Method::PromptsGet, &whole, [&oldest, &older, SAME, SAME]);

        // The same shapes elsewhere are somebody else's.
        check_result(era, Method::ResourcesRead, &call(&[audio, link]), [SAME; 4]);
    }
}

#[test]
fn a_substitute_keeps_what_there_is_to_keep() {
    for (block, told) in [
        (
            r#"{"type":"resource_link","name":"n","uri":"u:","title":"T","description":"D\n2","mimeType":"m/t","size":1}"#,
            r#"{"type":"text","text":"n: u:\nT\nD\n2\nm/t"}"#,
        ),
        (r#"{"type":"resource_link","uri":"u:","title":null}"#, r#"{"type":"text","text":"u:"}"#),
        (
            r#"{"_meta":{"k":1.0},"type":"resource_link","uri":"u:"}"#,
            r#"{"_meta":{"k":1.0},"type":"text","text":"u:"}"#,
        ),
        (r#"{"type":"resource_link","uri":"u:","name":"\ud800"}"#, r#"{"type":"text","text":"\ud800: u:"}"#),
        (r#"{"type":"resource_link","name":"n"}"#, SAME),
        (
            r#"{"_meta":{"k":1.0},"type":"audio","data":""}"#,
            r#"{"_meta":{"k":1.0},"type":"resource","resource":{"uri":"audio://prism/1","blob":""}}"#,
        ),
        (r#"{"type":"audio","data":5}"#, SAME),
        (r#"{"type":"video","data":""}"#, SAME),
        (r#"{"type":5}"#, SAME),
        ("5", SAME),
    ] {
        let call = |block: &str| format!(r#"{{"content":[{block}]}}"#);
        let told = if told == SAME { SAME.to_owned() } else { call(told) };
        assert_eq!(shown(result_for(V2024_11_05, Era::Legacy, Method::ToolsCall, &call(block))), told);
    }
}

#[test]
fn an_elicitation_says_what_the_client_can_show() {
    const NONE: Result<&str, &str> = Err("the client's protocol revision has no elicitation");
    const URL: Result<&str, &str> = Err("the client's protocol revision has no elicitation by URL");
    const MODE: Result<&str, &str> = Err("the client's protocol revision has no elicitation modes");
    const MANY: Result<&str, &str> = Err("the client's protocol revision has no form fields with several choices");
    let form = |field: &str| {
        format!(
            r#"{{"message":"m\u0021","requestedSchema":{{"type":"object","properties":{{"a":{{"type":"integer","default":1.0}},"b":{field}}},"required":["b"]}}}}"#
        )
    };
    fn elicit(params: &str, told: Result<&str, &str>) {
        check_question(Method::Elicit, params, [NONE, NONE, told, Ok(SAME)]);
    }
    elicit(&form(r#"{"type":"string","enum":["x"],"enumNames":["X"]}"#), Ok(SAME));
    elicit(
        &form(
            r#"{"type":"string","oneOf":[{"const":"x\u0031","title":"X"},{"title":"Y \"\u00e9\"","const":"y"},{"const":"z"}],"title":"t"}"#,
        ),
        Ok(&form(r#"{"type":"string","title":"t","enum":["x\u0031","y","z"],"enumNames":["X","Y \"\u00e9\"","z"]}"#)),
    );
    elicit(
        &form(r#"{"enum":["x"],"type":"string","oneOf":[{"const":"x","title":"X"}]}"#),
        Ok(&form(r#"{"type":"string","enum":["x"],"enumNames":["X"]}"#)),
    );
    // Not the shape the revision after it gave a meaning to.
    for foreign in [
        r#"{"type":"number","oneOf":[{"const":"1"}]}"#,
        r#"{"type":"string","oneOf":[{"const":1}]}"#,
        r#"{"type":"string","oneOf":[{"pattern":"x"}]}"#,
        r#"{"type":"string","oneOf":{}}"#,
        "5",
    ] {
        elicit(&form(foreign), Ok(SAME));
    }
    elicit(&form(r#"{"type":"array","items":{"type":"string","enum":["x"]}}"#), MANY);
    elicit(&form(r#"{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}"#), MANY);
    elicit(r#"{"mode":"form","message":"m","x":1.0}"#, Ok(r#"{"message":"m","x":1.0}"#));
    elicit(r#"{"mode":"url","message":"m","url":"u:","elicitationId":"e"}"#, URL);
    elicit(r#"{"mode":"voice","message":"m"}"#, MODE);
    elicit(r#"{"mode":5,"requestedSchema":[]}"#, Ok(SAME));
    elicit("[]", Ok(SAME));
}

#[test]
fn sampling_says_what_the_client_can_read() {
    const TOOLS: Result<&str, &str> = Err("the client's protocol revision has no tools in sampling");
    const BLOCK: Result<&str, &str> = Err("the client's protocol revision has no such content in sampling");
    const AUDIO: Result<&str, &str> = Err("the client's protocol revision has no audio in sampling");
    let (text, image) = (r#"{"type":"text", "text":"\u0074"}"#, r#"{"type":"image","data":"","mimeType":"i/p"}"#);
    let audio = r#"{"type":"audio","data":"","mimeType":"a/w"}"#;
    let params = |messages: &[String]| format!(r#"{{"messages":{},"maxTokens":1e2}}"#, array(messages));
    let message = |content: &str| format!(r#"{{"role":"user","content":{content}}}"#);
    let messages = |contents: &[&str]| params(&contents.iter().map(|content| message(content)).collect::<Vec<_>>());
    fn sample(params: &str, oldest: Result<&str, &str>, older: Result<&str, &str>) {
        check_question(Method::Sample, params, [oldest, older, older, Ok(SAME)]);
    }

    sample(&messages(&[text, image]), Ok(SAME), Ok(SAME));
    sample(&messages(&[text, audio]), AUDIO, Ok(SAME));
    let split = messages(&[text, text, image, image]);
    sample(&messages(&[text, &array(&[text, image]), image]), Ok(&split), Ok(&split));
    let split = messages(&[audio, text]);
    sample(&messages(&[&array(&[audio, text])]), AUDIO, Ok(&split));
    sample(&messages(&[text, "[]"]), Ok(&messages(&[text])), Ok(&messages(&[text])));
    for block in ["tool_use", "tool_result", "resource"] {
        let block = format!(r#"{{"type":"{block}"}}"#);
        sample(&messages(&[text, &block]), BLOCK, BLOCK);
        sample(&messages(&[&array(&[text, &block])]), BLOCK, BLOCK);
    }
    sample(r#"{"messages":[],"tools":[]}"#, TOOLS, TOOLS);
    sample(r#"{"messages":[],"toolChoice":{"mode":"none"}}"#, TOOLS, TOOLS);
    sample(r#"{"messages":[],"tools":null}"#, Ok(SAME), Ok(SAME));

    // What is about the message as a whole is said once, and nothing of any length is repeated.
    let many = format!(r#"{{"_meta":{{"k":1.0}},"role":"long","content":[{text},{image},{text}],"role":"assistant"}}"#);
    let first = format!(r#"{{"_meta":{{"k":1.0}},"role":"long","content":{text},"role":"assistant"}}"#);
    let rest = [image, text].map(|block| format!(r#"{{"role":"assistant","content":{block}}}"#));
    let split = params(&[&[first], &rest[..]].concat());
    sample(&params(&[many]), Ok(&split), Ok(&split));
    for malformed in [
        r#"{"messages":5}"#.to_owned(),
        params(&["5".to_owned(), r#"{"role":"user"}"#.to_owned()]),
        messages(&["5", "[5]", "{}"]),
        params(&[format!(r#"{{"role":"narrator","content":[{text}]}}"#)]),
    ] {
        sample(&malformed, Ok(SAME), Ok(SAME));
    }
}

#[test]
fn no_question_asks_for_a_task() {
    for method in [Method::Sample, Method::Elicit, Method::RootsList] {
        for revision in [V2025_06_18, V2025_11_25] {
            let asked = question_for(revision, method, r#"{"x":1.0,"task":{"ttl":5},"y":{"task":1}}"#).unwrap();
            assert_eq!(shown(asked), r#"{"x":1.0,"y":{"task":1}}"#);
        }
    }
    for revision in Revision::ALL {
        assert_eq!(question_for(revision, Method::RootsList, "{ }"), Ok(None));
    }
}

#[test]
fn a_legacy_question_becomes_an_input_request() {
    for (params, told) in [
        (r#"{"mode":"url","elicitationId":"e","url":"u:","task":{},"x":1.0}"#, r#"{"mode":"url","url":"u:","x":1.0}"#),
        (r#"{"_meta":{"progressToken":1},"message":"m"}"#, r#"{"message":"m"}"#),
        (r#"{"_meta":{"progressToken":1,"k":1.0}}"#, r#"{"_meta":{"k":1.0}}"#),
        (r#"{"message":"m","progressToken":1,"_meta":{}}"#, SAME),
        (r#"{"_meta":["progressToken"]}"#, SAME),
        ("null", SAME),
    ] {
        assert_eq!(shown(question_to_modern(params)), told);
    }
}

#[test]
fn an_input_request_becomes_a_legacy_question() {
    let asked = |revision, method, params: &str| question_to_legacy(revision, method, params, "id\"1").map(shown);
    let url = r#"{"mode":"url","url":"u:"}"#;
    let named = r#"{"mode":"url","url":"u:","elicitationId":"id\"1"}"#;
    assert_eq!(asked(V2025_11_25, Method::Elicit, url).as_deref(), Ok(named));
    assert_eq!(asked(V2025_11_25, Method::Elicit, r#"{"mode":"form"}"#).as_deref(), Ok(SAME));
    assert_eq!(asked(V2025_11_25, Method::Sample, url).as_deref(), Ok(SAME));
    // The older form's rules hold too.
    assert!(asked(V2025_06_18, Method::Elicit, url).is_err());
    assert_eq!(asked(V2025_06_18, Method::Elicit, r#"{"mode":"form"}"#).as_deref(), Ok("{}"));
    assert!(asked(V2025_06_18, Method::Sample, r#"{"tools":[]}"#).is_err());
    assert!(asked(V2025_03_26, Method::Elicit, "{}").is_err());
}

// checks 53
#[test]
fn structure_within_a_question_is_told_as_text_too() {
    let params = |schema: &str, content: &str| {
        format!(r#"{{"tools":[{{"name":"t"{schema}}}],"messages":[{{"role":"user","content":{content}}}]}}"#)
    };
    let block = |rest: &str| format!(r#"{{"type":"tool_result","toolUseId":"u","content":[{rest}}}"#);
    let structured = block(r#"],"structuredContent":[1.0]"#);
    let copied = block(&format!("{}]", copy("[1.0]")));
    let object = block(r#"],"structuredContent":{"a":1.0}"#);
    let (array, not) = (r#","outputSchema":{"type":"array"}"#, r#","outputSchema":{"type":"object"}"#);
    let asked = |params: &str| question_to_legacy(V2025_11_25, Method::Sample, params, "e").map(shown);
    assert_eq!(asked(&params(array, &structured)), Ok(params("", &copied)));
    assert_eq!(
        asked(&params(not, &format!("[{structured},{object}]"))),
        Ok(params(not, &format!("[{copied},{object}]")))
    );
    assert_eq!(asked(&params(not, &object)).as_deref(), Ok(SAME));
    let other = structured.replace("tool_result", "text");
    assert_eq!(asked(&params(not, &other)).as_deref(), Ok(SAME));
}

// checks 50
#[test]
fn a_missing_resource_has_the_code_of_the_era() {
    let error = |code: i64| format!(r#"{{"code":{code},"message":"\u006eo","data":{{"uri":"u:\u0061","n":1.0}}}}"#);
    let (modern, legacy) = (error(INVALID_PARAMS), error(RESOURCE_NOT_FOUND));
    let read = Method::ResourcesRead;
    for (method, uri, error, told) in [
        (read, Some("u:a"), modern.as_str(), legacy.as_str()),
        (read, Some("u:b"), &modern, SAME),
        (read, None, &modern, SAME),
        (Method::ToolsCall, Some("u:a"), &modern, SAME),
        (read, Some("u:a"), r#"{"code":-32602,"message":"m"}"#, SAME),
        (read, Some("u:a"), r#"{"code":-32602,"message":"m","data":"u:a"}"#, SAME),
        (read, Some("u:a"), &legacy, SAME),
        (read, Some("u:a"), "[-32602]", SAME),
    ] {
        assert_eq!(shown(error_to_legacy(method, uri, error)), told, "{error}");
    }
}

#[test]
fn what_a_modern_server_has_against_us_is_internal_to_a_legacy_client() {
    for code in [-32020, -32021, -32022] {
        let error = format!(r#"{{"code":{code},"message":"m\u0021","data":{{"requiredCapabilities":{{"x":1.0}}}}}}"#);
        let told = format!(r#"{{"code":-32603,"message":"m\u0021","data":{{"original":{error}}}}}"#);
        assert_eq!(shown(error_to_legacy(Method::ToolsCall, None, &error)), told);
    }
    let told = r#"{"code":-32603,"message":"Internal error","data":{"original":{"code":-32021,"message":5}}}"#;
    assert_eq!(shown(error_to_legacy(Method::ToolsCall, None, r#"{"code":-32021,"message":5}"#)), told);
    for code in ["-32019", "-32023", "-32602", "-32603", "5", "\"-32021\"", "-32021.5", "null"] {
        let error = format!(r#"{{"code":{code},"message":"m"}}"#);
        assert_eq!(error_to_legacy(Method::ToolsCall, Some("u:"), &error), None, "{code}");
    }
}

// checks 91
#[test]
fn no_modern_client_sees_a_code_that_its_revision_does_not_define() {
    let error = |code: i64| format!(r#"{{"code":{code},"message":"m\u0021","data":{{"uri":"u:","n":1.0}}}}"#);
    assert_eq!(shown(error_to_modern(&error(-32002))), error(-32602));
    for code in -32110..=-31990 {
        let told = match code {
            -32002 => continue,
            -32099..=-32020 => {
                format!(r#"{{"code":-32603,"message":"m\u0021","data":{{"original":{}}}}}"#, error(code))
            }
            _ => SAME.to_owned(),
        };
        assert_eq!(shown(error_to_modern(&error(code))), told, "{code}");
    }
    for malformed in ["5", "{}", r#"{"code":"-32002"}"#, r#"{"code":[]}"#] {
        assert_eq!(error_to_modern(malformed), None);
    }
}

// checks 90
#[test]
fn an_error_that_asks_for_a_visit_is_read_as_questions() {
    let error = |code: i64, list: &str| format!(r#"{{"code":{code},"message":"m","data":{{"elicitations":{list}}}}}"#);
    let one = r#"{"mode":"url","elicitationId":"e","url":"u:\u0031","message":"m"}"#;
    let bare = r#"{"task":{},"url":"u:2","n":1.0}"#;
    let told = [r#"{"mode":"url","url":"u:\u0031","message":"m"}"#, r#"{"url":"u:2","n":1.0,"mode":"url"}"#];
    let read = |list: &str| url_elicitations(&error(-32042, list));
    assert_eq!(read(&format!("[{one},{bare}]")).unwrap(), told);
    assert_eq!(url_elicitations(&error(-32041, &format!("[{one}]"))), None);
    for nothing in ["[]", "{}", "5", "[5]", r#"[{"mode":"url"}]"#, r#"[{"mode":"form","url":"u:"}]"#] {
        assert_eq!(read(nothing), None, "{nothing}");
        assert!(error_to_modern(&error(-32042, nothing)).is_some(), "what is not read is still not passed on");
    }
    assert_eq!(read(&format!("[{one},{{}}]")), None, "all or nothing");
    assert_eq!(url_elicitations(r#"{"code":-32042,"message":"m"}"#), None);
}

#[test]
fn a_name_said_twice_hides_nothing() {
    let link = r#"{"type":"resource_link","uri":"u:"}"#;
    let text = r#"{"type":"text","text":"u:"}"#;
    let call = |block: &str, rest: &str| format!(r#"{{"content":[{block}],"content":[{block}]{rest}}}"#);
    let told = result_for(V2025_03_26, Era::Legacy, Method::ToolsCall, &call(link, ""));
    assert_eq!(shown(told), call(text, ""));
    let twice = r#"{"task":1,"t\u0061sk":2}"#;
    assert_eq!(question_for(V2025_11_25, Method::RootsList, twice).map(shown).as_deref(), Ok("{}"));
    // The last one counts.
    let params = r#"{"mode":"form","mode":"url"}"#;
    assert!(question_for(V2025_06_18, Method::Elicit, params).is_err());
}

#[test]
fn depth_is_no_danger() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let result = format!(r#"{{"resultType":1,"structuredContent":{deep},"content":[],"x":{deep}}}"#);
    let told = result_for(V2025_11_25, Era::Modern, Method::ToolsCall, &result).unwrap();
    assert_eq!(told, format!(r#"{{"content":[{}],"x":{deep}}}"#, copy(&deep)));
}

/// The names and words that mean something here, so that chance finds the ways through.
const WORDS: &str = r"_meta progressToken resultType ttlMs cacheScope io.modelcontextprotocol/serverInfo tools outputSchema
    execution taskSupport type object array string content structuredContent text audio image resource_link
    tool_result data mimeType name uri title messages role user mode form url requestedSchema properties
    oneOf const enum task toolChoice elicitationId code message elicitations original a \u0061";

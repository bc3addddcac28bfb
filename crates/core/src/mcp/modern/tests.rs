use bytes::Bytes;

use super::*;
use crate::wire::MessageKind;

const NONE: &str =
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

fn message(text: &str) -> Message {
    Message::parse(Bytes::from(text.to_owned())).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A call of the tool `t` with that `_meta`.
fn call(meta: &str) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","_meta":{meta}}}}}"#))
}

fn fit() -> Message {
    call(&format!("{{{NONE}}}"))
}

fn headers<'a>(version: &'a str, method: &'a str, name: &'a str) -> RoutingHeaders<'a> {
    let header = |value: &'a str| if value.is_empty() { RoutingHeader::Absent } else { RoutingHeader::Once(value) };
    RoutingHeaders { version: header(version), method: header(method), name: header(name) }
}

fn checked(message: &Message, headers: &RoutingHeaders) -> Result<ClientMeta, RequestFault> {
    let MessageKind::Request(method) = message.kind() else { panic!("a request") };
    check(message, method, headers)
}

/// What is wrong with a request, in one word.
fn wrong(message: &Message, headers: &RoutingHeaders) -> &'static str {
    match checked(message, headers) {
        Ok(_) => "nothing",
        Err(RequestFault::Meta(_)) => "meta",
        Err(RequestFault::Mismatch(_)) => "mismatch",
        Err(RequestFault::Version { .. }) => "version",
        Err(RequestFault::Method) => "method",
    }
}

const RIGHT: (&str, &str, &str) = (VERSION, "tools/call", "t");

fn right() -> RoutingHeaders<'static> {
    headers(RIGHT.0, RIGHT.1, RIGHT.2)
}

// checks 58
#[test]
fn a_request_without_its_envelope_is_unfit_and_is_told_what_lacks() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    for (meta, lacks) in [
        ("{}".to_owned(), PROTOCOL_VERSION),
        (format!("{{{capabilities}}}"), PROTOCOL_VERSION),
        (format!("{{{version}}}"), CAPABILITIES),
        (format!(r#"{{{version},"io.modelcontextprotocol/clientCapabilities":[]}}"#), CAPABILITIES),
        (format!(r#"{{{capabilities},"io.modelcontextprotocol/protocolVersion":20260728}}"#), PROTOCOL_VERSION),
    ] {
        let Err(RequestFault::Meta(why)) = checked(&call(&meta), &right()) else { panic!("{meta}") };
        assert!(why.contains(lacks), "{why}");
    }
    for params in [r#","params":{"name":"t"}"#, ""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call"{params}}}"#);
        assert_eq!(wrong(&message(&text), &right()), "meta");
    }
}

// Invariant 6: what was read is what is forwarded.
#[test]
fn an_envelope_that_says_something_twice_is_unfit() {
    for twice in [
        r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#,
        r#""io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/logLevel":"error""#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"a"},"io.modelcontextprotocol/\u0063lientInfo":{"name":"b"}"#,
    ] {
        assert_eq!(wrong(&call(&format!("{{{NONE},{twice}}}")), &right()), "meta", "{twice}");
    }
}

// checks 59
#[test]
fn a_client_need_not_say_who_it_is() {
    assert_eq!(&*checked(&fit(), &right()).unwrap().info, "");
    let named = call(&format!(r#"{{{NONE},"io.modelcontextprotocol/clientInfo":{{"name":"c", "v":1.0}}}}"#));
    assert_eq!(&*checked(&named, &right()).unwrap().info, r#"{"name":"c", "v":1.0}"#);
}

#[test]
fn an_envelope_says_what_its_client_can_answer_and_wants_to_hear() {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}},"roots":{},"extensions":{"x/y":{}}},"io.modelcontextprotocol/logLevel":"warning"}"#;
    let ClientMeta { class, level, .. } = checked(&call(meta), &right()).unwrap();
    assert_eq!(class, ClientClass { url: true, roots: true, ..ClientClass::NONE });
    assert_eq!(level, Some(LogLevel::Warning));
    for level in [r#""loud""#, "7", "null", r#""Debug""#] {
        let meta = format!(r#"{{{NONE},"io.modelcontextprotocol/logLevel":{level}}}"#);
        assert_eq!(wrong(&call(&meta), &right()), "meta", "{level}");
    }
}

// checks 60
#[test]
fn the_version_header_is_there_once_and_says_what_the_body_says() {
    for version in ["", "2025-11-25", "2026-07-29", "v999"] {
        assert_eq!(wrong(&fit(), &headers(version, RIGHT.1, RIGHT.2)), "mismatch", "{version}");
    }
}

// checks 61 62
#[test]
fn a_version_that_both_agree_on_and_is_not_served_is_named() {
    for version in ["v999", "2027-01-01", "2025-11-25", "2024-11-05"] {
        let meta = format!("{{{}}}", NONE.replace(VERSION, version));
        let unfit = checked(&call(&meta), &headers(version, RIGHT.1, RIGHT.2));
        assert_eq!(unfit, Err(RequestFault::Version { requested: version.to_owned() }));
    }
}

// checks 63
#[test]
fn the_method_header_is_there_once_and_says_what_the_body_says() {
    for method in ["", "tools/list", "Tools/Call", "tools/call2"] {
        assert_eq!(wrong(&fit(), &headers(VERSION, method, RIGHT.2)), "mismatch", "{method}");
    }
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools\/list","params":{{"_meta":{{{NONE}}}}}}}"#);
    assert_eq!(wrong(&message(&text), &headers(VERSION, "tools/list", "")), "nothing");
}

// checks 64
#[test]
fn the_name_header_says_what_the_body_names() {
    for name in ["t", " t ", "\tt", "=?base64?dA==?="] {
        assert_eq!(wrong(&fit(), &headers(VERSION, RIGHT.1, name)), "nothing", "{name:?}");
    }
    for name in ["", "T", "u", "=?base64?dA=?=", "=?base64?dQ==?=", "=?base64?!!!!?=", "=?base64?dB==?="] {
        assert_eq!(wrong(&fit(), &headers(VERSION, RIGHT.1, name)), "mismatch", "{name:?}");
    }
    for (method, params, name) in [
        ("prompts/get", r#""name":"p""#, "p"),
        ("resources/read", r#""uri":"file:///é""#, "=?base64?ZmlsZTovLy/DqQ==?="),
    ] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{{NONE}}}}}}}"#);
        assert_eq!(wrong(&message(&text), &headers(VERSION, method, name)), "nothing", "{method}");
        assert_eq!(wrong(&message(&text), &headers(VERSION, method, "other")), "mismatch", "{method}");
        assert_eq!(wrong(&message(&text), &headers(VERSION, method, "")), "mismatch", "{method}");
    }
    // Where nothing is named there is nothing to repeat.
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{NONE}}}}}}}"#);
    assert_eq!(wrong(&message(&text), &headers(VERSION, "tools/list", "whatever")), "nothing");
}

// checks 66
#[test]
fn a_routing_header_that_comes_twice_is_a_mismatch() {
    for twice in 0..3 {
        let mut all = right();
        *[&mut all.version, &mut all.method, &mut all.name][twice] = RoutingHeader::Repeated;
        assert_eq!(wrong(&fit(), &all), "mismatch", "{twice}");
    }
}

// checks 69
#[test]
fn what_the_era_took_out_is_not_known_in_it() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{NONE}}}}}}}"#);
        assert_eq!(wrong(&message(&text), &headers(VERSION, method, "")), "method", "{method}");
    }
}

// mcp-eras 1.4: each thing that is wrong hides those that come after it.
#[test]
fn what_is_wrong_is_found_in_the_order_of_the_protocol() {
    let ping =
        |meta: &str| message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{meta}}}}}"#));
    let unserved = format!("{{{}}}", NONE.replace(VERSION, "v999"));
    let served = format!("{{{NONE}}}");
    assert_eq!(wrong(&ping("{}"), &headers("v1", "x", "")), "meta");
    assert_eq!(wrong(&ping(&unserved), &headers("v1", "x", "")), "mismatch");
    assert_eq!(wrong(&ping(&unserved), &headers("v999", "x", "")), "version");
    assert_eq!(wrong(&ping(&served), &headers(VERSION, "x", "")), "mismatch");
    assert_eq!(wrong(&ping(&served), &headers(VERSION, "ping", "")), "method");
}

// checks 65
#[test]
fn a_header_is_plain_text_or_base64_of_one_kind() {
    for (value, text) in [
        ("eu", "eu"),
        ("  eu\t", "eu"),
        ("", ""),
        ("=?base64??=", ""),
        ("=?base64?YQ==?=", "a"),
        ("=?base64?YWI=?=", "ab"),
        ("=?base64?YWJj?=", "abc"),
        ("=?base64?w6nigKg=?=", "é\u{2028}"),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ("=?base64?YQ==", "=?base64?YQ=="),
        ("a=?base64?YQ==?=", "a=?base64?YQ==?="),
    ] {
        assert_eq!(decoded(value).as_deref(), Some(text), "{value}");
    }
    for broken in ["YQ", "YQ=", "YQ===", "Y===", "====", "YR==", "YWJ=", "Y Q=", "Y-_=", "YQ==YQ==", "=YQ=", "/+8="] {
        assert_eq!(decoded(&format!("=?base64?{broken}?=")), None, "{broken}");
    }
}

// checks 95
#[test]
fn only_the_envelope_is_taken_out_of_what_a_legacy_server_sees() {
    let meta = format!(
        r#"{{"traceparent":"00", "progressToken":"t",{NONE},"io.modelcontextprotocol/clientInfo":{{}},"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/related-task":{{"taskId":"x"}},"a/b":[1.0]}}"#
    );
    assert_eq!(
        meta_to_legacy(&meta, 7),
        r#"{"traceparent":"00","progressToken":7,"io.modelcontextprotocol/related-task":{"taskId":"x"},"a/b":[1.0]}"#
    );
    assert_eq!(meta_to_legacy(&format!("{{{NONE}}}"), 7), "{}");
    assert_eq!(meta_to_legacy("7", 7), "{}");
}

fn greeting(capabilities: &str) -> ServerGreeting {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"s"}}}}}}"#
    );
    ServerGreeting::read(&message(&text)).unwrap()
}

// checks 71
#[test]
fn a_legacy_result_gets_its_kind_its_hints_and_its_server() {
    let told = greeting(r#"{"tools":{"listChanged":true}}"#);
    let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}"#;
    for method in [Method::ToolsList, Method::PromptsList, Method::ResourcesRead] {
        let hinted = format!(r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","n":1.0,{info}}}"#);
        for result in [r#"{"n":1.0}"#, r#"{"resultType":"x","ttlMs":9,"cacheScope":"public","n":1.0}"#] {
            assert_eq!(result_to_modern(method, result, Some(&told)), hinted);
        }
    }
    // A tool may well call something so, and it is not ours to drop.
    let result = r#"{"ttlMs":9,"content":[],"_meta":{"x":1.0,"io.modelcontextprotocol/serverInfo":"?"}}"#;
    assert_eq!(
        result_to_modern(Method::ToolsCall, result, Some(&told)),
        r#"{"resultType":"complete","ttlMs":9,"content":[],"_meta":{"x":1.0,"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
    );
    assert_eq!(result_to_modern(Method::ToolsCall, "{}", None), r#"{"resultType":"complete"}"#);
    assert_eq!(result_to_modern(Method::ToolsCall, "7", None), r#"{"resultType":"complete"}"#);
}

#[test]
fn a_legacy_request_gets_the_envelope_of_its_session() {
    let caller = OwnClientMeta {
        class: ClientClass { form: true, ..ClientClass::NONE },
        level: Some(LogLevel::Error),
        info: r#"{"name":"c"}"#,
    };
    let sealed = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/logLevel":"error""#;
    let bare = message(r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#);
    assert_eq!(
        to_modern(&bare, 7, caller, None),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"_meta":{{{sealed}}}}}}}"#)
    );
    let full = message(
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"arguments":{"n":1e400},"task":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"?","progressToken":"t","x":1.0},"name":"t"}}"#,
    );
    let round = InputRound {
        responses: vec![("k\"".to_owned(), "{\"a\":1.0}".to_owned())],
        state: Some(r#""s\u0020""#.into()),
    };
    let rest = sealed.split_once(',').unwrap().1;
    assert_eq!(
        to_modern(&full, 7, caller, Some(&round)),
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"arguments":{{"n":1e400}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7,"x":1.0,{rest}}},"name":"t","inputResponses":{{"k\"":{{"a":1.0}}}},"requestState":"s\u0020"}}}}"#
        )
    );
    let quiet = OwnClientMeta { level: None, ..caller };
    assert!(!to_modern(&bare, 7, quiet, Some(&InputRound::default())).contains("logLevel"));
    assert_eq!(
        own_request(
            7,
            Method::ResourcesRead,
            r#"{"uri":"u"}"#,
            OwnClientMeta { class: ClientClass::NONE, level: None, info: "{}" }
        ),
        r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"u","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{}}}}"#
    );
}

#[test]
fn a_level_that_is_another_calls_for_now_is_left_out() {
    let meta = r#"{"io.modelcontextprotocol/logLevel":"debug","progressToken":"t","x":1.0}"#;
    assert_eq!(meta_without_level(meta, 7), r#"{"progressToken":7,"x":1.0}"#);
    assert_eq!(meta_without_level(r#"{"x":1}"#, 7), r#"{"x":1}"#);
}

#[test]
fn questions_in_the_place_of_a_result_are_read_and_written() {
    let result = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"n":1.0}},"b\"":{"method":"roots/list"},"c":{"method":"x/y","params":{}},"d":7},"requestState":"s\u0020"}"#;
    let read = InputRequired::read(result).unwrap();
    let kinds: Vec<(&str, Method, &str)> =
        read.requests.iter().map(|one| (one.key.as_str(), one.method, one.params.as_str())).collect();
    let wanted = [
        ("a", Method::Elicit, r#"{"n":1.0}"#),
        ("b\"", Method::RootsList, "{}"),
        ("c", Method::Other, "{}"),
        ("d", Method::Other, "{}"),
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(read.state.as_deref(), Some(r#""s\u0020""#));
    let two = InputRequired { requests: read.requests[..2].to_vec(), state: read.state };
    assert_eq!(
        two.write("\"x\"", Some(&greeting("{}"))),
        r#"{"jsonrpc":"2.0","id":"x","result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"n":1.0}},"b\"":{"method":"roots/list","params":{}}},"requestState":"s\u0020","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}}"#
    );
    let only = InputRequired { requests: Vec::new(), state: Some("\"s\"".into()) };
    assert_eq!(
        only.write("1", None),
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#
    );
    for other in [
        r#"{"resultType":"complete","content":"input_required"}"#,
        r#"{"content":"input_required"}"#,
        r#"{"resultType":["input_required"]}"#,
        r#""input_required""#,
        "{}",
    ] {
        assert_eq!(InputRequired::read(other), None, "{other}");
    }
}

fn listen(params: &str) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#))
}

// checks 83
#[test]
fn a_filter_is_read_strictly_and_written_as_it_was_meant() {
    for params in [
        "{}",
        r#"{"notifications":[]}"#,
        r#"{"notifications":null}"#,
        r#"{"notifications":{"toolsListChanged":"yes"}}"#,
        r#"{"notifications":{"resourceSubscriptions":"u"}}"#,
        r#"{"notifications":{"resourceSubscriptions":[1]}}"#,
    ] {
        assert_eq!(ListenFilter::read(&listen(params)), None, "{params}");
    }
    for (params, written) in [
        (r#"{"notifications":{}}"#, "{}"),
        (r#"{"notifications":{"toolsListChanged":false,"promptsListChanged":null,"x":1}}"#, "{}"),
        (
            r#"{"notifications":{"resourceSubscriptions":["a\"","b"],"resourcesListChanged":true,"toolsListChanged":true}}"#,
            r#"{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a\"","b"]}"#,
        ),
    ] {
        let filter = ListenFilter::read(&listen(params)).unwrap();
        assert_eq!(filter.to_json(), written);
        assert_eq!(filter.is_empty(), written == "{}");
    }
}

#[test]
fn a_filter_wants_what_it_names_and_a_server_has() {
    let all = ListenFilter { tools: true, prompts: true, resources: true, uris: vec!["u".to_owned()] };
    assert_eq!(all.clone().within(&greeting("{}")), ListenFilter::default());
    // R-56: what a server of the older era has, it may tell of, whatever it announces.
    let some = greeting(r#"{"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false}}"#);
    let left = all.clone().within(&some);
    assert_eq!(
        left,
        ListenFilter { prompts: true, resources: true, uris: vec!["u".to_owned()], ..ListenFilter::default() }
    );
    assert!(left.wants(Method::PromptsChanged) && left.wants(Method::ResourcesChanged));
    assert!(!left.wants(Method::ToolsChanged));
    assert!(!all.wants(Method::ResourceUpdated) && !all.wants(Method::Log));
}

// checks 81 82 84
#[test]
fn what_a_listen_hears_carries_its_id_as_it_was_written() {
    let filter = ListenFilter { tools: true, ..ListenFilter::default() };
    for id in ["0", r#""0""#, r#""\u0031""#, "9007199254740993"] {
        let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        assert_eq!(
            acknowledgement(id, &filter),
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},{tag}}}}}"#
            )
        );
        assert_eq!(
            listen_over(id),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete",{tag}}}}}"#)
        );
        let change = message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        assert_eq!(
            tagged(&change, id),
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{tag}}}}}"#)
        );
        assert_eq!(
            untagged(&message(&tagged(&change, id))),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
        );
    }
    let update = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u","n":1.0,"_meta":{"x":1.0,"io.modelcontextprotocol/subscriptionId":7}}}"#;
    assert_eq!(subscription(&message(update)), Some(7));
    assert_eq!(subscription(&message(&update.replace(":7", r#":"7""#))), Some(7));
    assert_eq!(subscription(&message(&update.replace(":7", ":null"))), None);
    assert_eq!(tagged(&message(update), "8"), update.replace(":7", ":8"));
    let plain = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u","n":1.0,"_meta":{"x":1.0}}}"#;
    assert_eq!(untagged(&message(update)), plain);
    assert_eq!(subscription(&message(plain)), None);
    assert_eq!(untagged(&message(&plain.replace(r#""x":1.0"#, ""))), plain.replace(r#","_meta":{"x":1.0}"#, ""));
}

//! What arguments look like to a client, and what a client hears of bad ones.

use super::*;

async fn said(arguments: Value) -> Value {
    let mut client = Client::open();
    client.call(1, "echo", arguments, json!({}));
    client.result(1).await
}

#[tokio::test]
async fn a_schema_is_an_object_whose_properties_are_described() {
    let mut client = Client::open();
    client.request(1, "tools/list", json!({}), json!({}));
    let list = client.result(1).await;
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "report", "patient", "stubborn", "broken", "ask", "fail", "chatty"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["inputSchema"].get("$schema").is_none(), "{tool}");
    }
    assert_eq!(
        tools[0]["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say back."},
                "times": {"type": "integer", "minimum": 0, "description": "How often."},
                "tone": {"type": "string", "enum": ["low", "high"], "description": "How loud."},
            },
            "required": ["text"],
            "additionalProperties": false,
        })
    );
    assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(tools[1]["inputSchema"], json!({"type": "object", "properties": {}}));
    assert!(tools[1].get("annotations").is_none());
}

#[tokio::test]
async fn a_bad_argument_is_named_to_the_model() {
    for (arguments, why) in [
        (json!({"text": "a", "times": "b"}), "argument `times`: invalid type: string \"b\", expected u32"),
        (json!({"times": -1, "text": "a"}), "argument `times`: invalid value: integer `-1`, expected u32"),
        (json!({"text": ["a"]}), "argument `text`: invalid type: sequence, expected a string"),
        (json!({"text": "a", "tone": "shrill"}), "argument `tone`: unknown variant `shrill`, expected `low` or `high`"),
        (json!({}), "missing argument `text`"),
        (json!({"text": "a", "size": 1}), "unknown argument `size`, expected one of `text`, `times`, `tone`"),
        (json!(["a"]), "arguments must be an object"),
    ] {
        let result = said(arguments).await;
        assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!(why)));
    }
}

#[tokio::test]
async fn good_arguments_are_taken_and_a_value_is_also_a_text() {
    let result = said(json!({"text": "é", "times": 2, "tone": null})).await;
    assert_eq!(result["content"], json!([{"type": "text", "text": "éé"}]));
    assert!(result.get("isError").is_none());
    let result = said(json!({"text": "a", "tone": "high"})).await;
    assert_eq!(result["structuredContent"], json!({"said": "A"}));
    assert_eq!(result["content"][0]["text"], r#"{"said":"A"}"#);
}

#[test]
fn the_line_of_a_bad_argument_does_not_matter() {
    let text = "{\n \"text\": \"a\",\n \"times\":\n  true\n}";
    let error = super::schema::read::<EchoArguments>(text).err().unwrap();
    assert_eq!(error, "argument `times`: invalid type: boolean `true`, expected u32");
}

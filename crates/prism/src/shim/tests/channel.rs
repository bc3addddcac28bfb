//! Who is told of a channel, and what is said on it.

use std::time::Instant;

use super::{World, check, check_at};
use crate::shim::{
    bells::ShimBell,
    machine::{ShimMachine, ShimRoute},
};

#[test]
fn claude_code_is_told_of_a_channel_and_bells_are_waited_for() {
    check(
        r#"
        start
        started
        client > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"claude-code","version":"2"}}}
        daemon < 1 /mcp initialize
        daemon > 1 200 s1 {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}, "experimental":{"x":1}},"instructions":"é"}}
        attend
        client < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"experimental":{"x":1,"claude/channel":{}}},"instructions":"é"}}
        "#,
    );
    check(
        r#"
        start
        started
        client > {"id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"2"}}}}
        daemon < 1 /mcp server/discover
        daemon > 1 200 {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}
        attend
        client < {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"experimental":{"claude/channel":{}}}}}
        client > {"id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"2"}}}}
        daemon < 2 /mcp server/discover
        daemon > 2 200 {"id":2,"error":{"code":-32603,"message":"no"}}
        client < {"id":2,"error":{"code":-32603,"message":"no"}}
        "#,
    );
}

#[test]
fn no_other_client_and_no_other_server_has_a_channel() {
    for (route, name) in [
        (ShimRoute::Hub, "codex-mcp-client"),
        (ShimRoute::Hub, "claude-ai"),
        (ShimRoute::Direct("files".to_owned()), "claude-code"),
    ] {
        let path = match &route {
            ShimRoute::Hub => "/mcp",
            ShimRoute::Direct(_) => "/files/mcp",
        };
        let script = r#"
            start
            started
            client > {"id":1,"method":"initialize","params":{"clientInfo":{"name":"NAME"}}}
            daemon < 1 PATH initialize
            daemon > 1 200 s1 {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}, "x":1}}}
            client < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}, "x":1}}}
        "#;
        check_at(route, &script.replace("NAME", name).replace("PATH", path));
    }
}

#[test]
fn a_bell_is_said_in_the_clients_words() {
    let mut world = World { machine: ShimMachine::new(ShimRoute::Hub), now: Instant::now() };
    world.drain();
    world.machine.handle_bell(&ShimBell { text: "Signal from \"ana\"".to_owned(), agent: "bob".to_owned() });
    assert_eq!(
        world.drain(),
        [
            r#"client < {"method":"notifications/claude/channel","params":{"content":"Signal from \"ana\"","meta":{"agent":"bob"}}}"#
        ]
    );
}

//! The destinations: how each is, how its calls go, and what its server wrote last.

use maud::{Markup, html};
use prism_api::status::DestinationStatus;
use prism_bridge::drive::{health, stderr::StderrLine};

use super::{
    page::{ConsolePage, Tone, empty, state, tag, typed, visible},
    trend::TrendLine,
    words::{Moment, ago, bytes, count, grouped, millis},
};

/// A destination, with what `/status` does not tell.
#[derive(Debug)]
pub struct DestinationCard {
    pub report: DestinationStatus,
    pub trend: TrendLine,
    /// The last lines of its server's stderr.
    pub stderr: Vec<StderrLine>,
}

pub fn page(all: &[DestinationCard], now: Moment) -> Markup {
    let (own, configured): (Vec<&DestinationCard>, Vec<&DestinationCard>) =
        all.iter().partition(|one| one.report.kind == "built_in");
    html! {
        @if configured.is_empty() {
            (empty(ConsolePage::Destinations, "No MCP server is configured yet", &html! {
                "Add one, and it is here at once: " (typed("prism add files -- npx -y @modelcontextprotocol/server-filesystem ."))
            }))
        } @else {
            ul.cards data-key="configured" aria-label="Configured servers" {
                @for one in configured { (card(one, now)) }
            }
        }
        h2.section data-key="own-title" { "Prism’s own" }
        ul.cards data-key="own" aria-label="Prism’s own servers" {
            @for one in own { (card(one, now)) }
        }
    }
}

fn card(DestinationCard { report: one, trend, stderr }: &DestinationCard, now: Moment) -> Markup {
    let tone = tone(one);
    let server = one.server.as_ref().map(|server| format!("{} {}", server.name, server.version));
    let number = |text: String, none: bool| html! { dd data-none[none] { (text) } };
    let time = |ms: Option<f64>| number(ms.map_or_else(|| "–".to_owned(), millis), ms.is_none());
    html! {
        li.card.destination data-key=(one.name) data-item tabindex="0" aria-label=(one.name) {
            div.card-head {
                h3 { (one.name) }
                (state(tone, &health::word(&one.state)))
                @if !one.changed_tools.is_empty() { (tag(Tone::Notice, &count(one.changed_tools.len() as u64, "changed tool"))) }
                @if one.kind != "built_in" {
                    button.small type="button" data-act data-post="/console/act/restart" data-body=(serde_json::json!({"destination": one.name}))
                        data-done={ "Ended " (one.name) ". The next process starts when it is needed." } disabled[one.links.is_empty()]
                        title=(if one.links.is_empty() { "It starts with the next call" } else { "End its process and start it again; sessions go on" }) {
                        "Restart"
                    }
                }
            }
            p.sub {
                (kind(&one.kind))
                @if one.sandboxed { ", sandboxed" }
                @if let Some(server) = server { " · " (visible(server.trim())) }
                @if one.memory_bytes > 0 { " · " (bytes(one.memory_bytes)) }
                @if one.restarts > 0 { " · " (count(one.restarts, "restart")) }
            }
            // Prism’s own have little to say until they are used.
            @if one.kind != "built_in" || one.requests > 0 {
                div.measures {
                    dl.numbers {
                        div { dt { "Calls" } (number(grouped(one.calls), one.calls == 0)) }
                        div { dt { "Errors" } dd data-none[one.failures == 0] data-bad[one.failures > 0] { (grouped(one.failures)) } }
                        div { dt { "p50" } (time(one.p50_ms)) }
                        div { dt { "p99" } (time(one.p99_ms)) }
                    }
                    figure { (trend.drawn()) figcaption { "Latency, last 5 min" } }
                }
            }
            @if one.is_ill() {
                p.trouble {
                    b { (visible(&one.why)) }
                    @if let Some(fix) = &one.fix { " · " (typed(fix)) }
                }
            } @else if let Some(trouble) = &one.last_error {
                p.trouble {
                    b { "Last error: " } (visible(&trouble.text)) " · "
                    (ago(now.before(std::time::Duration::from_secs_f64(trouble.ago_s.max(0.0))), now))
                }
            }
            @if !one.changed_tools.is_empty() {
                p.trouble {
                    b { "Not as agreed: " } (visible(&one.changed_tools.join(", "))) " · "
                    a href="/console/confirmations" { "see what changed" }
                }
            }
            @if one.kind == "stdio" {
                details data-key={ (one.name) "-log" } {
                    summary { "Log" span.fine { " · " (log_size(stderr)) } }
                    @if stderr.is_empty() {
                        p.fine { "What the server writes to stderr is shown here." }
                    } @else {
                        pre.log tabindex="0" aria-label={ "Last lines of " (one.name) } {
                            @for line in stderr { span.line { (visible(&line.text)) "\n" } }
                        }
                    }
                }
            }
        }
    }
}

fn log_size(stderr: &[StderrLine]) -> String {
    if stderr.is_empty() { "nothing yet".to_owned() } else { format!("last {}", count(stderr.len() as u64, "line")) }
}

/// What colour its word has.
fn tone(one: &DestinationStatus) -> Tone {
    match one.state.as_str() {
        "up" => Tone::Good,
        "slow" | "starting" => Tone::Notice,
        _ if one.is_ill() => Tone::Bad,
        _ => Tone::Quiet,
    }
}

fn kind(kind: &str) -> &str {
    match kind {
        "built_in" => "built in",
        "streamable_http" | "http" => "over HTTP",
        "sse" => "over HTTP+SSE",
        "stdio" => "local process",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use prism_api::status::LastTrouble;

    use super::*;

    fn seen(name: &str, state: &str) -> DestinationCard {
        let report =
            DestinationStatus { name: name.into(), kind: "stdio".into(), state: state.into(), ..Default::default() };
        DestinationCard { report, trend: TrendLine::default(), stderr: Vec::new() }
    }

    #[test]
    fn with_nothing_configured_it_says_what_to_type() {
        assert!(page(&[], Moment(0)).into_string().contains("prism add files"));
    }

    #[test]
    fn what_a_server_says_is_text() {
        let mut one = seen("a", "up");
        one.report.last_error = Some(LastTrouble { text: "<script>alert(1)</script>".into(), ago_s: 3.0 });
        one.stderr = vec![StderrLine { text: "<img src=x>".into() }];
        let page = page(&[one], Moment(10_000)).into_string();
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("&lt;img src=x&gt;"), "{page}");
        assert!(page.contains(">up<") && page.contains("3 s ago"), "{page}");
    }

    //
    #[test]
    fn what_is_wrong_stands_there_with_what_to_type() {
        let mut one = seen("a", "unauthorized");
        one.report.why = "it wants <you> to sign in".to_owned();
        one.report.fix = Some("prism add a --force".to_owned());
        let page = page(&[one], Moment(10_000)).into_string();
        assert!(page.contains(">unauthorized<") && page.contains("it wants &lt;you&gt; to sign in"), "{page}");
        assert!(page.contains("prism add a --force"), "{page}");
    }
}

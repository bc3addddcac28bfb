//! A reader of server-sent events by the letter of the HTML standard, independent of what wrote them.

/// One event as a client sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

/// Reads a stream of events. Comments are skipped; an event that no blank line ends is not dispatched. Unlike a
/// browser it also returns events without data, because those are the priming ones.
pub(crate) fn read(stream: &[u8]) -> Vec<Event> {
    let text = std::str::from_utf8(stream).expect("a stream of events is UTF-8");
    // A line ends with CR LF, LF or CR.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    let mut event: Option<Event> = None;
    let mut lines: Vec<&str> = text.split('\n').collect();
    // What follows the last line end is no line yet.
    lines.pop();
    for line in lines {
        if line.is_empty() {
            events.extend(event.take());
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field.is_empty() {
            continue;
        }
        let value = value.strip_prefix(' ').unwrap_or(value);
        let event = event.get_or_insert_default();
        match field {
            "event" => value.clone_into(&mut event.name),
            "id" => event.id = Some(value.to_owned()),
            "data" if event.data.is_empty() => value.clone_into(&mut event.data),
            "data" => event.data = format!("{}\n{value}", event.data),
            _ => {}
        }
    }
    events
}

//! Bytes of an event stream: however they are cut, the events are the same, and what is kept is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prism_core::wire::sse::{SseEvent, SseSplitter};

fuzz_target!(|data: &[u8]| {
    let [size, step, written @ ..] = data else { return };
    // Large enough that nothing is over it: what is too long may be told at another moment.
    let limit = written.len() + 1;
    let whole = events(written, limit, |_| written.len());
    let pieces = events(written, limit, |n| 1 + usize::from(size.wrapping_add(step.wrapping_mul(n as u8))));
    assert_eq!(whole, pieces);
    for event in events(written, usize::from(*size), |n| 1 + n % 7).0 {
        if let SseEvent::Data { data, .. } = event {
            assert!(data.len() <= usize::from(*size));
        }
    }
});

fn events(written: &[u8], limit: usize, size: impl Fn(usize) -> usize) -> (Vec<SseEvent>, Option<String>, Option<u64>) {
    let mut reader = SseSplitter::new(limit);
    let (mut events, mut rest, mut n) = (Vec::new(), written, 0);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(size(n).min(rest.len()));
        reader.push(piece);
        while let Some(event) = reader.next_event() {
            events.push(event);
        }
        (rest, n) = (later, n + 1);
    }
    (events, reader.last_id().map(str::to_owned), reader.retry_ms())
}

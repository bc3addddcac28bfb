//! Bytes of a pipe: however they are cut, the lines are the same; and of a message: as an event it is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prism_core::wire::{
    Frame, LineSplitter,
    frame::{EventId, event},
};

#[path = "../../src/wire/frame/tests/sse.rs"]
mod sse;

fuzz_target!(|data: &[u8]| {
    let [limit, size, step, written @ ..] = data else { return };
    let limit = 1 + usize::from(*limit) * 8;
    let whole = frames(written, limit, |_| written.len());
    let pieces = frames(written, limit, |n| 1 + usize::from(size.wrapping_add(step.wrapping_mul(n as u8))));
    assert_eq!(whole, pieces);
    for frame in &whole {
        let Frame::Line(line) = frame else { continue };
        assert!(line.len() <= limit && !line.contains(&b'\n'));
        let Ok(text) = std::str::from_utf8(line) else { continue };
        let id = EventId { stream: limit as u64, event: u64::from(*size) };
        let events = sse::read(&event(Some(id), &[line]));
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].id.as_deref().map(str::parse), Some(Ok(id)));
        assert_eq!((events[0].name.as_str(), events[0].data.clone()), ("message", text.replace('\r', " ")));
    }
});

fn frames(written: &[u8], limit: usize, size: impl Fn(usize) -> usize) -> Vec<Frame> {
    let mut lines = LineSplitter::new(limit);
    let (mut frames, mut rest, mut n) = (Vec::new(), written, 0);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(size(n).min(rest.len()));
        lines.space().extend_from_slice(piece);
        while let Some(frame) = lines.next_frame() {
            frames.push(frame);
        }
        (rest, n) = (later, n + 1);
        let kept = lines.space().len();
        assert!(kept <= limit.max(64) + 1, "{kept} bytes are kept");
    }
    frames
}

//! Any way a pipe may cut its bytes, the lines are the same; and whatever is an event, a client reads back.

pub(crate) mod sse;

use proptest::prelude::*;

use super::*;

/// The frames of the bytes, read in pieces of the given sizes, over and over.
fn frames(bytes: &[u8], pieces: &[usize], limit: usize) -> Vec<Frame> {
    let mut lines = LineSplitter::new(limit);
    let mut frames = Vec::new();
    let mut rest = bytes;
    for size in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at((*size).min(rest.len()));
        rest = later;
        lines.space().extend_from_slice(piece);
        while let Some(frame) = lines.next_frame() {
            frames.push(frame);
        }
        assert!(lines.buffer.len() <= limit + 1 + KEPT_TAIL_BYTES, "{} bytes are kept", lines.buffer.len());
    }
    frames
}

fn line(text: &str) -> Frame {
    Frame::Line(Bytes::copy_from_slice(text.as_bytes()))
}

fn too_long(head: &str, tail: &str) -> Frame {
    Frame::TooLong { head: Bytes::copy_from_slice(head.as_bytes()), tail: Bytes::copy_from_slice(tail.as_bytes()) }
}

// mcp-eras 1.6: only 0x0A ends a line, one CR before it is no part of it, and blank lines are none.
#[test]
fn lines_end_at_line_feeds_only() {
    let written = "a\nb\r\n\n  \r\nc\u{2028}d\u{85}\r\r\ne \n unfinished";
    assert_eq!(
        frames(written.as_bytes(), &[1024], 100),
        [line("a"), line("b"), line("c\u{2028}d\u{85}\r"), line("e ")]
    );
}

// B-18.
#[test]
fn a_line_over_the_limit_leaves_its_two_ends_and_the_next_one_is_whole() {
    let written = format!("{}\nnext\n", "0123456789".repeat(20));
    let tail = "6789".to_owned() + &"0123456789".repeat(6);
    for size in [1, 7, 64, 65, 1000] {
        assert_eq!(frames(written.as_bytes(), &[size], 10), [too_long("0123456789", &tail), line("next")], "{size}");
    }
}

#[test]
fn a_line_of_just_the_limit_passes_with_its_carriage_return() {
    for size in [1, 10, 11, 12, 100] {
        assert_eq!(
            frames(b"0123456789\r\n0123456789a\n", &[size], 10),
            [line("0123456789"), too_long("0123456789", "0123456789a")]
        );
    }
}

#[test]
fn an_endless_line_is_read_in_bounded_memory() {
    let mut lines = LineSplitter::new(1000);
    for _ in 0..1000 {
        lines.space().extend_from_slice(&[b'x'; 4096]);
        assert_eq!(lines.next_frame(), None);
        assert!(lines.buffer.capacity() < 128 << 10, "{} bytes are kept", lines.buffer.capacity());
    }
    lines.space().extend_from_slice(b"\nafter\n");
    assert!(matches!(lines.next_frame(), Some(Frame::TooLong { head, .. }) if head.len() == 1000));
    assert_eq!(lines.next_frame(), Some(line("after")));
}

#[test]
fn an_event_id_is_two_numbers_and_nothing_else() {
    assert_eq!("3-14".parse(), Ok(EventId { stream: 3, event: 14 }));
    for text in ["", "-", "1", "1-", "-1", "1--1", "+1-1", "1-1 ", "1-1-1", "a-1", "18446744073709551616-0", "٣-1"] {
        assert_eq!(text.parse::<EventId>(), Err(()), "{text:?}");
    }
}

// N-03, N-04.
#[test]
fn a_keep_alive_is_no_event_and_a_priming_event_has_no_data() {
    let id = EventId { stream: 1, event: 0 };
    let stream = [KEEP_ALIVE, &priming_event(id), KEEP_ALIVE].concat();
    let primed = sse::Event { name: "message".to_owned(), id: Some("1-0".to_owned()), data: String::new() };
    assert_eq!(sse::read(&stream), [primed]);
}

/// Bytes in which line ends, blank lines and long lines are frequent.
fn written() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b" ".to_vec()),
        4 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => proptest::collection::vec(Just(b'x'), 0..200),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_same_bytes_are_the_same_frames_however_they_are_cut(
        written in written(), pieces in proptest::collection::vec(1..80usize, 1..8), limit in 1..150usize,
    ) {
        let whole = frames(&written, &[usize::MAX], limit);
        prop_assert_eq!(&frames(&written, &pieces, limit), &whole);
        // And what they are is what the standard library makes of it.
        let ended = written.iter().rposition(|b| *b == b'\n').map_or(&[][..], |at| &written[..at]);
        let lines = ended.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let kept: Vec<&[u8]> = lines.filter(|line| line.len() > limit || !line.trim_ascii().is_empty()).collect();
        prop_assert_eq!(whole.len(), kept.len());
        for (frame, line) in whole.iter().zip(kept) {
            match frame {
                Frame::Line(whole) => prop_assert_eq!(&whole[..], line),
                Frame::TooLong { head, tail } => {
                    prop_assert!(line.len() > limit && line.starts_with(head) && line.ends_with(tail));
                    prop_assert!(head.len() == limit && tail.len() == line.len().min(KEPT_TAIL_BYTES));
                }
            }
        }
    }

    #[test]
    fn an_event_id_survives_its_text(stream: u64, event: u64) {
        let id = EventId { stream, event };
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }

    // One `data:` line, whatever line breaks the message has.
    // checks 12
    #[test]
    fn an_event_is_read_back_as_what_was_sent(
        pieces in proptest::collection::vec("[ \r\n:a-z\u{2028}{}\"]{0,12}", 0..4), id in proptest::option::of(any::<(u64, u64)>()),
    ) {
        let parts: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
        let id = id.map(|(stream, event)| EventId { stream, event });
        let events = sse::read(&event(id, &parts));
        let data = pieces.concat().replace(['\r', '\n'], " ");
        prop_assert_eq!(events, [sse::Event { name: "message".to_owned(), id: id.map(|id| id.to_string()), data }]);
    }
}

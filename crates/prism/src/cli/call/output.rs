//! The result of a tool as text: what can be read is shown, what cannot is saved or summed up.

use std::{fs, path::Path};

use anyhow::{Context, bail};
use serde_json::Value;

use prism_mcp::client::{ContentBlock, Foreign, SeenParams, ToolResult};

/// Files of one name that are numbered before we give up.
const MAX_NUMBERED: usize = 10_000;
/// Cells of a progress bar.
const CELLS: usize = 20;

/// Returns the blocks of a result, one text each. With a folder what is not text is saved there.
pub(super) fn texts(result: &ToolResult, save: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for block in &result.content {
        texts.push(text(block, save)?);
    }
    // Servers repeat what is structured as text; where one does not, this is all there is.
    if texts.is_empty()
        && let Some(structured) = &result.structured
    {
        texts.push(serde_json::to_string_pretty(structured)?);
    }
    Ok(texts)
}

fn text(block: &Value, save: Option<&Path>) -> anyhow::Result<String> {
    let one = ContentBlock::of(block);
    Ok(match one.kind.as_str() {
        "text" => one.text,
        kind @ ("image" | "audio") => file(kind, &one.mime, &one.data, save)?,
        "resource" => {
            let resource = one.resource;
            match (resource.text, resource.blob) {
                (Some(text), _) => text,
                (None, Some(blob)) => file(name_of(&resource.uri), &resource.mime, &blob, save)?,
                (None, None) => format!("[resource {}]", resource.uri),
            }
        }
        "resource_link" => format!("[link {} {}]", one.name, one.uri),
        _ => block.to_string(),
    })
}

/// The last part of a URI, as far as it can name a file.
fn name_of(uri: &str) -> &str {
    let name = uri.rsplit('/').find(|part| !part.is_empty()).unwrap_or("resource");
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if plain && !name.starts_with('.') { name } else { "resource" }
}

fn file(name: &str, mime: &str, data: &str, save: Option<&Path>) -> anyhow::Result<String> {
    let mime = if mime.is_empty() { "application/octet-stream" } else { mime };
    let Some(bytes) = decoded(data) else { return Ok(format!("[{mime}, not valid base64]")) };
    let Some(folder) = save else {
        return Ok(format!("[{mime}, {}; --save DIR keeps it]", size(bytes.len())));
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let named = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    let (stem, extension) = named.unwrap_or((name, extension(mime)));
    for number in 1..MAX_NUMBERED {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{stem}{number}.{extension}"));
        // What is there stays: a server does not choose what of ours it replaces.
        match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut to) => {
                std::io::Write::write_all(&mut to, &bytes)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                return Ok(format!("[{mime}, {}, saved as {}]", size(bytes.len()), path.display()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
    bail!("{} is full of files of that name", folder.display())
}

fn extension(mime: &str) -> &str {
    let kind = mime.split(';').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    match kind {
        "jpeg" => "jpg",
        "svg+xml" => "svg",
        "mpeg" => "mp3",
        "x-wav" => "wav",
        "octet-stream" => "bin",
        "plain" => "txt",
        kind if !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) => kind,
        _ => "bin",
    }
}

/// A size for people.
fn size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Decodes base64, in either alphabet, with or without padding and line breaks.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches(['=', '\n', '\r', ' ']).bytes() {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'\n' | b'\r' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        2 => bytes.push((bits >> 4) as u8),
        3 => bytes.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        _ => return None,
    }
    Some(bytes)
}

/// One line that says how far a call is.
pub(super) fn bar(params: &SeenParams) -> String {
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
    let done = number(&params.progress).unwrap_or_default();
    let message = params.message.as_ref().map(|message| format!(" {message}")).unwrap_or_default();
    match number(&params.total).filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            let full = (part * CELLS as f64) as usize;
            format!("[{}{}] {:3.0}%{message}", "#".repeat(full), "-".repeat(CELLS - full), part * 100.0)
        }
        // Without a total a number says nothing: it may be anything that grows.
        None if message.is_empty() => "… working".to_owned(),
        None => format!("…{message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use prism_mcp::client::SeenMessage;

    fn texts(result: &Value, save: Option<&Path>) -> anyhow::Result<Vec<String>> {
        super::texts(&ToolResult::of(result), save)
    }

    #[test]
    fn blocks_are_shown_as_text_or_summed_up() {
        let result = json!({"content": [
            {"type": "text", "text": "a\nb"},
            {"type": "image", "mimeType": "image/png", "data": "QUJD"},
            {"type": "resource", "resource": {"uri": "x://y/z.txt", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "x://y/z.bin", "blob": "!!"}},
            {"type": "resource_link", "uri": "x://y", "name": "why"},
        ], "structuredContent": {"not": "shown"}});
        let shown = texts(&result, None).unwrap();
        let expected = [
            "a\nb",
            "[image/png, 3 bytes; --save DIR keeps it]",
            "inside",
            "[application/octet-stream, not valid base64]",
            "[link why x://y]",
        ];
        assert_eq!(shown, expected);
        let only = json!({"content": [], "structuredContent": {"sum": 3}});
        assert_eq!(texts(&only, None).unwrap(), ["{\n  \"sum\": 3\n}"]);
    }

    #[test]
    fn files_are_saved_beside_what_is_there_and_never_outside() {
        let folder = tempfile::tempdir().unwrap();
        let blob = |uri: &str| json!({"content": [{"type": "resource", "resource": {"uri": uri, "blob": "QUJD"}}]});
        for (uri, name) in [
            ("x://y/z.bin", "z.bin"),
            ("x://y/z.bin", "z-2.bin"),
            ("x://y/..", "resource.bin"),
            ("x://y/a b", "resource-2.bin"),
        ] {
            let said = texts(&blob(uri), Some(folder.path())).unwrap();
            assert!(said[0].contains(&format!("saved as {}", folder.path().join(name).display())), "{said:?}");
            assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"ABC");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn base64_is_read_in_every_way_that_servers_write_it() {
        for (text, bytes) in
            [("", &b""[..]), ("Zg==", b"f"), ("Zm8", b"fo"), ("Zm9v\r\nYg==\n", b"foob"), ("-_-_", &[0xFB, 0xFF, 0xBF])]
        {
            assert_eq!(decoded(text).as_deref(), Some(bytes), "{text:?}");
        }
        assert_eq!(decoded("a"), None);
        assert_eq!(decoded("a b c d"), None);
    }

    #[test]
    fn progress_is_one_line() {
        let bar = |params: Value| super::bar(&SeenMessage::of(&json!({"params": params})).params);
        assert_eq!(
            bar(json!({"progress": 1, "total": 4, "message": "copying"})),
            "[#####---------------]  25% copying"
        );
        assert_eq!(bar(json!({"progress": 9, "total": 4})), "[####################] 100%");
        assert_eq!(bar(json!({"progress": 7})), "… working");
        assert_eq!(bar(json!({"progress": -0.01, "message": "waiting"})), "… waiting");
    }
}

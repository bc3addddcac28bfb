//! A stdio MCP server that is never the bottleneck: `echo-stdio [TOOLS]`, with one tool unless told, see `perf::echo`.
use perf::echo::{Envelope, Era, answer, tools};
use std::io::{BufRead, BufReader, BufWriter, Write};

fn main() -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin());
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
    let tools = tools(std::env::args().nth(1).map_or(1, |count| count.parse().expect("usage: echo-stdio [TOOLS]")));
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Ok(message) = serde_json::from_str::<Envelope>(&line) {
            answer(&message, Era::Legacy, &tools, &mut out, |out, delay| {
                out.flush()?;
                std::thread::sleep(delay);
                Ok(())
            })?;
        }
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
}

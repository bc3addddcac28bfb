//! Tables on a terminal: rows below their heads, in as many columns as there is room for. What stands in them is decided
//! by the commands.

use std::io::{self, IsTerminal};

use super::{
    say::{Colour, Line},
    visible::visible_line,
};

/// Between two columns.
pub(super) const GAP: &str = "  ";

/// A cell, and what is worth a colour in it.
pub(super) type Cell = (String, Option<Colour>);

/// A column: its head, whether numbers stand in it, and how gladly it is left out where there is no room. 0: never.
pub(super) struct Column {
    head: &'static str,
    right: bool,
    sacrifice: u8,
}

pub(super) const fn text(head: &'static str, sacrifice: u8) -> Column {
    Column { head, right: false, sacrifice }
}

pub(super) const fn number(head: &'static str, sacrifice: u8) -> Column {
    Column { head, right: true, sacrifice }
}

/// The width of what is written to stdout: of the terminal, or none where it is no terminal.
pub(super) fn width() -> usize {
    let terminal = io::stdout().is_terminal().then(prism_os::terminal::width).flatten();
    terminal.unwrap_or(usize::MAX)
}

/// Lays out rows below their heads. Columns are left out until it fits; each row may bring lines of its own.
pub(super) fn table(columns: &[Column], mut rows: Vec<(Vec<Cell>, Vec<Line>)>, width: usize) -> Vec<Line> {
    // Many cells have words of others, and no cell has a second line.
    for (text, _) in rows.iter_mut().flat_map(|(cells, _)| cells) {
        *text = visible_line(text);
    }
    let letters = |text: &str| text.chars().count();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows.iter().filter_map(|(cells, _)| cells.get(at)).map(|(text, _)| letters(text));
            cells.chain([letters(column.head)]).max().unwrap_or_default()
        })
        .collect();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let needed =
        |kept: &[usize]| kept.iter().map(|at| widths[*at] + GAP.len()).sum::<usize>().saturating_sub(GAP.len());
    while needed(&kept) > width {
        let dearest = kept.iter().filter(|at| columns[**at].sacrifice > 0).max_by_key(|at| columns[**at].sacrifice);
        let Some(dearest) = dearest.copied() else { break };
        kept.retain(|at| *at != dearest);
    }
    let row = |cells: &[Cell]| -> Line {
        let mut line = Line::new();
        for (place, at) in kept.iter().enumerate() {
            let (text, colour) = &cells[*at];
            let room = " ".repeat(widths[*at] - letters(text));
            let gap = if place == 0 { "" } else { GAP };
            let last = place + 1 == kept.len();
            match columns[*at].right {
                true => line.extend([(format!("{gap}{room}"), None), (text.clone(), *colour)]),
                false => {
                    line.extend([(gap.to_owned(), None), (text.clone(), *colour)]);
                    line.push((if last { String::new() } else { room }, None));
                }
            }
        }
        line
    };
    let heads: Vec<Cell> = columns.iter().map(|column| (column.head.to_owned(), Some(Colour::Dim))).collect();
    let mut lines = vec![row(&heads)];
    for (cells, details) in &rows {
        lines.push(row(cells));
        lines.extend(details.iter().cloned());
    }
    lines
}

/// The line within the width: one that wrapped would push the others out of place.
pub(super) fn cut(line: Line, width: usize) -> Line {
    let mut left = width;
    let mut kept = Line::new();
    for (text, colour) in line {
        let letters = text.chars().count();
        if letters <= left {
            left -= letters;
            kept.push((text, colour));
            continue;
        }
        let mut text: String = text.chars().take(left.saturating_sub(1)).collect();
        text.push('…');
        kept.push((text, colour));
        break;
    }
    kept
}

//! A picture of a screen, straight from its buffer, as SVG. Text is text; frames, bars and gauges are drawn as shapes, so
//! that they meet whatever font the reader has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// A cell of 14 pixels of DejaVu Sans Mono: box lines of neighbouring rows join.
const CELL: (f64, f64) = (8.43, 16.3);
/// Around the screen.
const MARGIN: f64 = 14.0;
/// Where letters stand, below the upper edge of their cell.
const BASELINE: f64 = 12.6;
const BACKGROUND: &str = "#0d1117";
const FOREGROUND: &str = "#d3dae3";

/// The colours of a dark terminal, readable beside GitHub's light and dark pages.
const ANSI: [&str; 16] = [
    "#0d1117", "#ff7b72", "#3fb950", "#d6a22e", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4", "#7d8590",
    "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
];

fn hex(colour: Color, plain: &str) -> String {
    let ansi = |number: usize| ANSI[number].to_owned();
    match colour {
        Color::Reset => plain.to_owned(),
        Color::Black => ansi(0),
        Color::Red => ansi(1),
        Color::Green => ansi(2),
        Color::Yellow => ansi(3),
        Color::Blue => ansi(4),
        Color::Magenta => ansi(5),
        Color::Cyan => ansi(6),
        Color::Gray => ansi(7),
        Color::DarkGray => ansi(8),
        Color::LightRed => ansi(9),
        Color::LightGreen => ansi(10),
        Color::LightYellow => ansi(11),
        Color::LightBlue => ansi(12),
        Color::LightMagenta => ansi(13),
        Color::LightCyan => ansi(14),
        Color::White => ansi(15),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Indexed(number) => ansi(usize::from(number) % 16),
    }
}

/// How a run of cells looks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Paint {
    ink: String,
    paper: String,
    bold: bool,
}

impl Paint {
    fn of(cell: &Cell) -> Self {
        let (mut ink, mut paper) = (hex(cell.fg, FOREGROUND), hex(cell.bg, BACKGROUND));
        if cell.modifier.contains(Modifier::REVERSED) {
            std::mem::swap(&mut ink, &mut paper);
        }
        Self { ink, paper, bold: cell.modifier.contains(Modifier::BOLD) }
    }
}

/// Shapes by colour: each colour is one path, whatever the number of its pieces.
#[derive(Default)]
struct Shapes {
    /// Left, top, right and bottom.
    filled: BTreeMap<(String, &'static str), Vec<[f64; 4]>>,
    lines: BTreeMap<String, String>,
}

impl Shapes {
    /// Takes a cell over that is a frame, a bar or a gauge; says whether it was one.
    fn take(&mut self, symbol: &str, ink: &str, x: f64, y: f64) -> bool {
        let (w, h) = CELL;
        let mut fill = |opacity: &'static str, top: f64| {
            let pieces = self.filled.entry((ink.to_owned(), opacity)).or_default();
            // A hair between rows, so that bars of neighbours can be told apart.
            let edge = if top == 0.0 { 0.9 } else { 0.0 };
            let piece = [x, y + h * top + edge, x + w, y + h - edge];
            match pieces.last_mut() {
                // One piece with its neighbour, so that no seam shows.
                Some(last) if near(last[2], x) && near(last[1], piece[1]) && near(last[3], piece[3]) => {
                    last[2] = piece[2];
                }
                _ => pieces.push(piece),
            }
        };
        match symbol {
            "█" => fill("1", 0.0),
            "▓" => fill(".75", 0.0),
            "▒" => fill(".55", 0.0),
            "░" => fill(".38", 0.0),
            "▁" => fill("1", 7.0 / 8.0),
            "▂" => fill("1", 6.0 / 8.0),
            "▃" => fill("1", 5.0 / 8.0),
            "▄" => fill("1", 4.0 / 8.0),
            "▅" => fill("1", 3.0 / 8.0),
            "▆" => fill("1", 2.0 / 8.0),
            "▇" => fill("1", 1.0 / 8.0),
            _ => return self.line(symbol, ink, x, y),
        }
        true
    }

    fn line(&mut self, symbol: &str, ink: &str, x: f64, y: f64) -> bool {
        let (w, h) = CELL;
        let (middle, centre) = (x + w / 2.0, y + h / 2.0);
        let (right, bottom) = (x + w, y + h);
        let piece = match symbol {
            "─" => format!("M{x:.1} {centre:.1}H{right:.1}"),
            "│" => format!("M{middle:.1} {y:.1}V{bottom:.1}"),
            "┌" => format!("M{right:.1} {centre:.1}H{middle:.1}V{bottom:.1}"),
            "┐" => format!("M{x:.1} {centre:.1}H{middle:.1}V{bottom:.1}"),
            "└" => format!("M{right:.1} {centre:.1}H{middle:.1}V{y:.1}"),
            "┘" => format!("M{x:.1} {centre:.1}H{middle:.1}V{y:.1}"),
            "├" => format!("M{middle:.1} {y:.1}V{bottom:.1}M{middle:.1} {centre:.1}H{right:.1}"),
            "┊" => format!("M{middle:.1} {:.1}v3.6m0 4.2v3.6", y + 2.0),
            _ => return false,
        };
        self.lines.entry(ink.to_owned()).or_default().push_str(&piece);
        true
    }

    fn write(&self, svg: &mut String) {
        for ((ink, opacity), pieces) in &self.filled {
            let mut path = String::new();
            for [left, top, right, bottom] in pieces {
                let _ = write!(path, "M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}z");
            }
            let _ = writeln!(svg, "<path fill=\"{ink}\" fill-opacity=\"{opacity}\" d=\"{path}\"/>");
        }
        for (ink, path) in &self.lines {
            let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{ink}\" d=\"{path}\"/>");
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.01
}

/// The picture.
pub(crate) fn svg(buffer: &Buffer, title: &str) -> String {
    let (columns, rows) = (buffer.area.width, buffer.area.height);
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut papers = String::new();
    let mut texts = String::new();
    let mut shapes = Shapes::default();
    for row in 0..rows {
        draw_row(buffer, row, &mut papers, &mut texts, &mut shapes);
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"'DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"14\">\n\
         <title>{}</title>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n\
         <rect x=\".5\" y=\".5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"9.5\" fill=\"none\" stroke=\"#30363d\"/>\n",
        escaped(title),
        width - 1.0,
        height - 1.0,
    );
    svg.push_str(&papers);
    shapes.write(&mut svg);
    svg.push_str(&texts);
    svg.push_str("</svg>\n");
    svg
}

/// One row: runs of the same look, without the shapes in them.
fn draw_row(buffer: &Buffer, row: u16, papers: &mut String, texts: &mut String, shapes: &mut Shapes) {
    let y = MARGIN + f64::from(row) * CELL.1;
    let mut column = 0;
    while column < buffer.area.width {
        let paint = Paint::of(&buffer[(column, row)]);
        let start = column;
        let mut text = String::new();
        let mut wide = 0;
        let mut texts_from = column;
        while column < buffer.area.width && Paint::of(&buffer[(column, row)]) == paint {
            let symbol = buffer[(column, row)].symbol();
            let x = MARGIN + f64::from(column) * CELL.0;
            if shapes.take(symbol, &paint.ink, x, y) {
                put(texts, &paint, &text, texts_from, wide, y);
                (text, wide, texts_from) = (String::new(), 0, column + 1);
                column += 1;
                continue;
            }
            text.push_str(symbol);
            let cells = (symbol.width() as u16).max(1);
            wide += cells;
            column += cells;
        }
        put(texts, &paint, &text, texts_from, wide, y);
        if paint.paper != BACKGROUND {
            let x = MARGIN + f64::from(start) * CELL.0;
            // A little under its neighbour, so that no seam shows.
            let wide = f64::from(column - start) * CELL.0 + 0.3;
            let _ = writeln!(
                papers,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                CELL.1 + 0.1,
                paint.paper
            );
        }
    }
}

/// A run of text, exactly as wide as its cells.
fn put(out: &mut String, paint: &Paint, text: &str, column: u16, wide: u16, y: f64) {
    let before = text.len() - text.trim_start_matches(' ').len();
    let text_only = text.trim_matches(' ');
    if text_only.is_empty() {
        return;
    }
    let after = text.len() - before - text_only.len();
    let cells = f64::from(wide) - before as f64 - after as f64;
    let x = MARGIN + (f64::from(column) + before as f64) * CELL.0;
    let bold = if paint.bold { " font-weight=\"bold\"" } else { "" };
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{bold} \
         xml:space=\"preserve\">{}</text>",
        y + BASELINE,
        cells * CELL.0,
        paint.ink,
        escaped(text_only)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

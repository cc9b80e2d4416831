//! A recording in the format of asciinema (asciicast v2), made without a terminal and without waiting: frames go through
//! the same backend as on a real terminal, into memory.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::session::Session;

/// What was written since the last frame.
#[derive(Clone, Default)]
struct Tape(Rc<RefCell<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recording under way.
pub(crate) struct Cast {
    tape: Tape,
    terminal: Terminal<CrosstermBackend<Tape>>,
    /// Milliseconds since its beginning.
    now: u64,
    lines: Vec<String>,
}

impl Cast {
    pub(crate) fn new((width, height): (u16, u16), title: &str) -> Self {
        // Whatever the environment says of colours: a recording is the same everywhere.
        crossterm::style::force_color_output(true);
        let tape = Tape::default();
        let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
        let backend = CrosstermBackend::new(tape.clone());
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport }).expect("a terminal");
        let head = serde_json::json!({"version": 2, "width": width, "height": height, "title": title,
            "env": {"TERM": "xterm-256color"}});
        let mut cast = Self { tape, terminal, now: 0, lines: vec![head.to_string()] };
        cast.write("\u{1b}[?25l\u{1b}[2J");
        cast
    }

    fn write(&mut self, text: &str) {
        let seconds = self.now as f64 / 1_000.0;
        self.lines.push(serde_json::json!([seconds, "o", text]).to_string());
    }

    /// One frame, shown for so long; a key that was pressed stands in the corner.
    pub(crate) fn frame(&mut self, session: &Session, key: &str, millis: u64) {
        let mut buffer = session.painted();
        badge(&mut buffer, key);
        self.terminal
            .draw(|frame| {
                frame.buffer_mut().clone_from(&buffer);
            })
            .expect("it is drawn");
        let bytes = std::mem::take(&mut *self.tape.0.borrow_mut());
        if !bytes.is_empty() {
            self.write(&String::from_utf8(bytes).expect("text"));
        }
        self.now += millis;
    }

    /// Presses keys one after the other, each shown for so long.
    pub(crate) fn press(&mut self, session: &mut Session, keys: &str, millis: u64) {
        for key in keys.split_whitespace() {
            session.press(key);
            self.frame(session, key, millis);
        }
    }

    /// The whole recording.
    pub(crate) fn end(mut self) -> String {
        self.write("\u{1b}[?25h");
        self.lines.join("\n") + "\n"
    }

    /// How long it takes, in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.now / 1_000
    }
}

/// Shows a key at the right end of the last line.
fn badge(buffer: &mut Buffer, key: &str) {
    if key.is_empty() || buffer.area.height == 0 {
        return;
    }
    let text = format!(" {key} ");
    let x = buffer.area.width.saturating_sub(text.chars().count() as u16 + 1);
    let style = Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD);
    buffer.set_string(x, buffer.area.height - 1, text, style);
}

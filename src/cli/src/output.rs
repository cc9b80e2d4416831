//! The only place that writes to standard output and standard error.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use yard_client::Document;

use crate::args::ColorChoice;

/// What a piece of text means; colours follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It went well.
    Good,
    /// A person may want to look.
    Warn,
    /// It went wrong.
    Bad,
    /// Less important.
    Dim,
    /// A heading.
    Bold,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Warn => "33",
            Self::Bad => "31",
            Self::Dim => "2",
            Self::Bold => "1",
        }
    }
}

/// Standard output and how it is to be written.
pub(crate) struct Out {
    stdout: BufWriter<Stdout>,
    json: bool,
    quiet: bool,
    color: bool,
    color_err: bool,
    terminal: bool,
    width: usize,
}

impl Out {
    pub(crate) fn new(json: bool, quiet: bool, color: ColorChoice) -> Self {
        let terminal = io::stdout().is_terminal();
        let wanted = |terminal: bool| match color {
            ColorChoice::Auto => terminal && !Self::is_plain(),
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let columns = std::env::var("COLUMNS").ok().filter(|_| terminal).and_then(|c| c.parse().ok());
        Self {
            stdout: BufWriter::with_capacity(64 * 1024, io::stdout()),
            json,
            quiet,
            color: wanted(terminal),
            color_err: wanted(io::stderr().is_terminal()),
            terminal,
            width: columns.unwrap_or(80).clamp(40, 400),
        }
    }

    /// The same for somebody at the other end of ssh, whose terminal is that wide.
    pub(crate) fn seen_afar(mut self, columns: u16, color: ColorChoice) -> Self {
        self.terminal = true;
        self.color |= color == ColorChoice::Auto;
        self.width = usize::from(columns).clamp(40, 400);
        self
    }

    /// Whether colours are unwelcome, also on a terminal.
    pub(crate) fn is_plain() -> bool {
        std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
    }

    /// Whether documents are wanted instead of text.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether only ids are wanted.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a person looks at the output as it comes.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How wide a line may be.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// One line.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// A heading with an empty line before it.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.paint(Tone::Bold, text);
        writeln!(self.stdout, "\n{text}")
    }

    /// A document as it came.
    pub(crate) fn document(&mut self, document: &Document) -> io::Result<()> {
        self.line(document.get())
    }

    /// Bytes as they came.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// Sends what is written on its way.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Text in the colour of its meaning, on standard output.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        paint(self.color, tone, text)
    }

    /// Text in the colour of its meaning, on standard error.
    pub(crate) fn paint_err(&self, tone: Tone, text: &str) -> String {
        paint(self.color_err, tone, text)
    }

    /// Whether standard error may be coloured.
    pub(crate) fn colours_errors(&self) -> bool {
        self.color_err
    }

    /// Something a person should know although it is not the answer.
    pub(crate) fn notice(&mut self, text: &str) {
        let word = self.paint_err(Tone::Warn, "note:");
        self.complain(&format!("{word} {}", yard_client::Safe(text)));
    }

    /// A line on standard error, after what was written before; if nobody reads it, nothing can be done.
    pub(crate) fn complain(&mut self, line: &str) {
        let _ = self.flush();
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

fn paint(color: bool, tone: Tone, text: &str) -> String {
    if color { format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code()) } else { text.to_owned() }
}

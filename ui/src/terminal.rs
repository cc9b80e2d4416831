//! The terminal: taken over, and given back whatever happens.

use std::io::{self, Write, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

/// Whether the terminal is ours: it is given back once.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOKED: Once = Once::new();

/// The screen.
pub(crate) type Screen = Terminal<CrosstermBackend<Ours>>;

/// Standard output as long as the terminal is ours, and nothing afterwards. A screen that goes out of scope shows its
/// cursor; on a terminal that is gone ratatui complains on standard error, which is gone too, and that panics before
/// the workers of this console are drained.
#[derive(Debug)]
pub(crate) struct Ours(io::Stdout);

impl Write for Ours {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if TAKEN.load(Ordering::SeqCst) { self.0.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if TAKEN.load(Ordering::SeqCst) { self.0.flush() } else { Ok(()) }
    }
}

/// Takes the terminal over; a panic gives it back before it says what happened.
pub(crate) fn take(mouse: bool) -> io::Result<Screen> {
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
    let taken = enter(mouse).and_then(|()| {
        let mut screen = Terminal::new(CrosstermBackend::new(Ours(stdout())))?;
        clear(&mut screen)?;
        Ok(screen)
    });
    taken.inspect_err(|_| give_back())
}

/// Empties the screen, so that the next frame draws all of it. Not ratatui's `clear`: it asks the terminal where the
/// cursor is, which some never answer, and whose answer crossterm misses after an event stream was dropped.
pub(crate) fn clear(screen: &mut Screen) -> io::Result<()> {
    let size = screen.size()?;
    screen.resize(Rect::new(0, 0, size.width, size.height))
}

/// Enters raw mode and the other screen.
pub(crate) fn enter(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
    if mouse {
        execute!(stdout(), EnableMouseCapture)?;
    }
    Ok(())
}

/// Gives the terminal back, as it was. What cannot be written to a terminal that is gone does not matter any more.
pub(crate) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            stdout(),
            DisableMouseCapture,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            cursor::Show
        );
        let _ = disable_raw_mode();
        let _ = stdout().flush();
    }
}

/// Takes the mouse, or leaves it to the terminal.
pub(crate) fn mouse(ours: bool) -> io::Result<()> {
    if ours { execute!(stdout(), EnableMouseCapture) } else { execute!(stdout(), DisableMouseCapture) }
}

/// Gives the terminal back when it goes out of scope, be it by an error.
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

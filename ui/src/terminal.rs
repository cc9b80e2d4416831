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

/// Whether the terminal is ours: it is given back once.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOKED: Once = Once::new();

/// The screen.
pub(crate) type Screen = Terminal<CrosstermBackend<io::Stdout>>;

/// Takes the terminal over; a panic gives it back before it says what happened.
pub(crate) fn take(mouse: bool) -> io::Result<Screen> {
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
    enter(mouse)?;
    let mut screen = Terminal::new(CrosstermBackend::new(stdout()))?;
    screen.clear()?;
    Ok(screen)
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

//! What a program says to its terminal besides the text on it.

use vt100::Screen;

/// What a program asked its terminal for besides text.
#[derive(Debug, Default, Clone)]
pub struct Asked {
    /// Titles of the window or its icon.
    pub titles: Vec<String>,
    /// Texts for the clipboard, in base 64.
    pub copies: Vec<String>,
    /// Sizes of the window.
    pub sizes: Vec<(u16, u16)>,
    /// Sequences that no program of ours has a reason to send.
    pub strange: Vec<String>,
    /// Answers on their way to the program.
    pub(super) replies: Vec<u8>,
}

impl vt100::Callbacks for Asked {
    fn resize(&mut self, _: &mut Screen, size: (u16, u16)) {
        self.sizes.push(size);
    }

    fn set_window_icon_name(&mut self, _: &mut Screen, name: &[u8]) {
        self.titles.push(String::from_utf8_lossy(name).into_owned());
    }

    fn set_window_title(&mut self, _: &mut Screen, title: &[u8]) {
        self.titles.push(String::from_utf8_lossy(title).into_owned());
    }

    fn copy_to_clipboard(&mut self, _: &mut Screen, _: &[u8], data: &[u8]) {
        self.copies.push(String::from_utf8_lossy(data).into_owned());
    }

    fn unhandled_osc(&mut self, _: &mut Screen, params: &[&[u8]]) {
        let params: Vec<_> = params.iter().map(|param| String::from_utf8_lossy(param)).collect();
        self.strange.push(format!("OSC {}", params.join(";")));
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        _: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        // Where the cursor is: every terminal answers, and programs wait for it.
        if last == 'n' && params.first().is_some_and(|param| *param == [6]) {
            let (row, column) = screen.cursor_position();
            self.replies.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
        }
    }
}

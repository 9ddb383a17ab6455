//! The lines of a file that one read shows.
//!
//! Knows line numbers and how much may be shown. Must not know what the lines mean; who may see them was decided before.

/// Collects lines from text that comes in pieces: those from a number on, until enough lines or bytes are there.
///
/// Lines end at LF. A line that would go beyond the byte limit is cut between characters and is the last one shown.
#[derive(Clone, Debug)]
pub struct LineWindow {
    from: u64,
    lines_left: u64,
    bytes_left: u64,
    hidden: Option<u64>,
    /// Number of the line that the next byte belongs to.
    number: u64,
    open: Option<String>,
    lines: Vec<(u64, String)>,
    next: Option<u64>,
    cut: Option<u64>,
}

/// What a window shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Lines and their numbers.
    pub lines: Vec<(u64, String)>,
    /// The number to ask for next; none: everything was shown.
    pub next: Option<u64>,
    /// The line of which only the beginning is shown.
    pub cut: Option<u64>,
}

impl LineWindow {
    /// Shows at most `lines` lines and about `bytes` bytes, from line number `from` on.
    #[must_use]
    pub fn new(from: u64, lines: u64, bytes: u64) -> Self {
        Self {
            from,
            lines_left: lines,
            bytes_left: bytes,
            hidden: None,
            number: 1,
            open: None,
            lines: Vec::new(),
            next: None,
            cut: None,
        }
    }

    /// What is pushed next begins with the line of this number. Closes the line that was open.
    pub fn jump(&mut self, number: u64) {
        self.close();
        self.number = number;
    }

    /// The line of this number is not shown.
    pub fn hide(&mut self, number: Option<u64>) {
        self.hidden = number;
    }

    /// Whether more text can change anything.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.next.is_none()
    }

    /// Takes the next text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while self.wants_more() && !rest.is_empty() {
            let (line, ended, behind) = match rest.split_once('\n') {
                Some((line, behind)) => (line, true, behind),
                None => (rest, false, ""),
            };
            self.take(line);
            if ended && self.wants_more() {
                self.close();
                self.number = self.number.saturating_add(1);
            }
            rest = behind;
        }
    }

    fn take(&mut self, part: &str) {
        if self.number < self.from || self.hidden == Some(self.number) {
            return;
        }
        if self.open.is_none() && (self.lines_left == 0 || self.bytes_left == 0) {
            self.next = Some(self.number);
            return;
        }
        let room = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
        let shown = part.get(..part.floor_char_boundary(room)).unwrap_or_default();
        self.open.get_or_insert_default().push_str(shown);
        self.bytes_left = self.bytes_left.saturating_sub(part.len() as u64);
        if shown.len() < part.len() {
            self.close();
            self.next = Some(self.number.saturating_add(1));
            self.cut = Some(self.number);
        }
    }

    fn close(&mut self) {
        if let Some(line) = self.open.take() {
            self.lines.push((self.number, line));
            self.lines_left = self.lines_left.saturating_sub(1);
            // The line's end counts too: lines without a character must not be free.
            self.bytes_left = self.bytes_left.saturating_sub(1);
        }
    }

    /// What there is to show.
    #[must_use]
    pub fn finish(mut self) -> Shown {
        self.close();
        Shown { lines: self.lines, next: self.next, cut: self.cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str, from: u64, lines: u64, bytes: u64) -> Shown {
        let whole = {
            let mut window = LineWindow::new(from, lines, bytes);
            window.push(text);
            window.finish()
        };
        // However the text is cut, the lines are the same.
        let mut pieces = LineWindow::new(from, lines, bytes);
        for piece in text.split_inclusive(|_| true) {
            pieces.push(piece);
        }
        assert_eq!(pieces.finish(), whole);
        whole
    }

    fn shown(lines: Vec<(u64, String)>, next: Option<u64>) -> Shown {
        Shown { lines, next, cut: None }
    }

    fn line(number: u64, text: &str) -> (u64, String) {
        (number, text.to_owned())
    }

    #[test]
    fn a_part_in_the_middle() {
        assert_eq!(window("a\nb\nc\nd\n", 2, 2, 100), shown(vec![line(2, "b"), line(3, "c")], Some(4)));
        assert_eq!(window("a\nb\nc\nd\n", 3, 2, 100), shown(vec![line(3, "c"), line(4, "d")], None));
        assert_eq!(window("a\nb", 2, 9, 100), shown(vec![line(2, "b")], None));
        assert_eq!(window("a\n", 5, 9, 100), shown(vec![], None));
    }

    #[test]
    fn empty_lines_are_lines() {
        assert_eq!(window("\n\nx\n", 1, 9, 100), shown(vec![line(1, ""), line(2, ""), line(3, "x")], None));
    }

    #[test]
    fn bytes_run_out_between_characters() {
        assert_eq!(window("你好\nb\n", 1, 9, 4), Shown { cut: Some(1), ..shown(vec![line(1, "你")], Some(2)) });
        assert_eq!(window("aaaa\nb\n", 1, 9, 4), shown(vec![line(1, "aaaa")], Some(2)));
    }

    #[test]
    fn jumps_and_hidden_lines() {
        let mut window = LineWindow::new(1, 9, 100);
        window.jump(7);
        window.hide(Some(8));
        window.push("seven\neight\nnine");
        window.jump(20);
        window.push("twenty\n");
        assert_eq!(window.finish(), shown(vec![line(7, "seven"), line(9, "nine"), line(20, "twenty")], None));
    }
}

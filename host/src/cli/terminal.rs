//! How text looks: colour, control characters, widths, wrapping, marked words.
//!
//! Pure: text in, text out. Knows nothing of memory, and nothing here decides where text goes.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a stream can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// A person reads it.
    pub terminal: bool,
    /// Escape sequences for colour are wanted.
    pub colour: bool,
    /// Columns; none where text is not wrapped.
    pub width: Option<usize>,
}

/// Narrower than this no terminal is taken seriously.
const WIDTH_MIN: usize = 30;
/// Longer lines are hard to read, however wide the terminal.
const WIDTH_MAX: usize = 110;

impl Look {
    /// The look of a stream.
    pub fn of<S: anstream::stream::RawStream + std::os::fd::AsFd>(stream: &S) -> Self {
        let terminal = stream.is_terminal();
        let colour = terminal && anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never;
        let width = terminal.then(|| terminal_size::terminal_size_of(stream)).flatten();
        let width = width.map(|(columns, _)| usize::from(columns.0).clamp(WIDTH_MIN, WIDTH_MAX));
        Self { terminal, colour, width }
    }

    /// `text` in a style, if this stream shows styles.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// What is worth seeing first.
    pub fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// What may be overlooked.
    pub fn faint(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// All is well.
    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// Something to look at.
    pub fn warning(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Something is wrong.
    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// A word that was looked for.
    pub fn mark(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Text that somebody else wrote: as it is in a pipe, harmless on a terminal.
    pub fn foreign(self, text: &str) -> String {
        if self.terminal { escape(text) } else { text.to_owned() }
    }
}

/// Whether a character could drive a terminal or turn the order of what is shown: a control character other than LF and
/// TAB, or one of the bidirectional embeddings, overrides and isolates.
fn is_dangerous(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Makes text harmless for a terminal: what could drive it is written as `\r`, `\x1b`, `\u{202e}`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_dangerous(c) => out.push(c),
            '\r' => out.push_str("\\r"),
            c if u32::from(c) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    out
}

/// The same for text that must stay on one line: LF and TAB are escaped too.
pub fn escape_line(text: &str) -> String {
    escape(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Columns that `text` takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Runs of white space become one space, as in running text.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Breaks text into lines of at most `width` columns, at spaces and beside wide characters (which need no space to break
/// at); what has no such place is cut. Line feeds of the text stay breaks.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut used = 0;
        // Byte position in `line` behind which it may be broken, and whether a space there is dropped.
        let mut place = 0;
        for c in paragraph.chars() {
            let w = c.width().unwrap_or(0);
            if w == 2 {
                place = line.len();
            }
            if used + w > width && !line.is_empty() {
                if c == ' ' {
                    lines.push(std::mem::take(&mut line));
                    (used, place) = (0, 0);
                    continue;
                }
                let rest = if place == 0 { String::new() } else { line.split_off(place) };
                let full = std::mem::replace(&mut line, rest);
                lines.push(full.trim_end_matches(' ').to_owned());
                (used, place) = (columns(&line), 0);
            }
            line.push(c);
            used += w;
            if c == ' ' || w == 2 {
                place = line.len();
            }
        }
        lines.push(line);
    }
    lines
}

/// Marks the words of a query where they stand in a line. For the eye only: what matched is the component's knowledge.
///
/// A word of the line is marked when it and a word of the query begin alike (so that `bolts` shows `bolt`); in scripts
/// written without spaces, every pair of neighbouring characters of the query is.
pub fn highlight(line: &str, query: &str, look: Look) -> String {
    if !look.colour {
        return line.to_owned();
    }
    let wanted: Vec<(Script, String)> =
        runs(query).filter_map(|run| run.script.map(|s| (s, folded(run.text)))).collect();
    let mut out = String::with_capacity(line.len() + 32);
    for run in runs(line) {
        match run.script {
            Some(Script::Spaced)
                if wanted.iter().any(|(s, word)| *s == Script::Spaced && alike(word, &folded(run.text))) =>
            {
                out.push_str(&look.mark(run.text));
            }
            Some(Script::Dense) => out.push_str(&mark_pairs(run.text, &wanted, look)),
            _ => out.push_str(run.text),
        }
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Words stand between spaces.
    Spaced,
    /// Chinese, Japanese, Thai and so on: by width and block, which is enough for marking.
    Dense,
}

struct Run<'a> {
    text: &'a str,
    /// None: between words.
    script: Option<Script>,
}

fn script(c: char) -> Option<Script> {
    if !c.is_alphanumeric() {
        None
    } else if c.width() == Some(2) || ('\u{0e00}'..='\u{0eff}').contains(&c) {
        Some(Script::Dense)
    } else {
        Some(Script::Spaced)
    }
}

/// Splits text where the kind of script changes; nothing is lost.
fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let kind = script(rest.chars().next()?);
        let end = rest.char_indices().find(|(_, c)| script(*c) != kind).map_or(rest.len(), |(at, _)| at);
        let (text, tail) = rest.split_at(end);
        rest = tail;
        Some(Run { text, script: kind })
    })
}

fn folded(word: &str) -> String {
    word.to_lowercase()
}

/// One is the beginning of the other, or both begin with the same four characters and differ in a short ending.
fn alike(a: &str, b: &str) -> bool {
    let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let (long, short) = (a.chars().count().max(b.chars().count()), a.chars().count().min(b.chars().count()));
    long == short && common == long || common >= 4 && long - common <= 3
}

fn mark_pairs(text: &str, wanted: &[(Script, String)], look: Look) -> String {
    let chars: Vec<char> = folded(text).chars().collect();
    let shown: Vec<char> = text.chars().collect();
    if chars.len() != shown.len() {
        return text.to_owned();
    }
    let mut marked = vec![false; chars.len()];
    for (_, word) in wanted.iter().filter(|(s, _)| *s == Script::Dense) {
        let word: Vec<char> = word.chars().collect();
        let step = word.len().min(2);
        for pair in word.windows(step) {
            for at in 0..=chars.len().saturating_sub(step) {
                if chars.get(at..at + step) == Some(pair) {
                    marked.iter_mut().skip(at).take(step).for_each(|m| *m = true);
                }
            }
        }
    }
    let mut out = String::new();
    let mut at = 0;
    while let Some(&flag) = marked.get(at) {
        let end = marked.iter().skip(at).position(|m| *m != flag).map_or(marked.len(), |n| at + n);
        let piece: String = shown.iter().skip(at).take(end - at).collect();
        out.push_str(&if flag { look.mark(&piece) } else { piece });
        at = end;
    }
    out
}

/// A number of bytes for people: `812 B`, `4.1 KiB`.
pub fn bytes(n: u64) -> String {
    indicatif::BinaryBytes(n).to_string()
}

/// `1 file`, `2 files`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    let mut digits = n.to_string();
    let mut at = digits.len();
    while at > 3 {
        at -= 3;
        digits.insert(at, ' ');
    }
    format!("{digits} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOUR: Look = Look { terminal: true, colour: true, width: None };
    const PLAIN: Look = Look { terminal: true, colour: false, width: None };
    const PIPE: Look = Look { terminal: false, colour: false, width: None };

    #[test]
    fn a_record_cannot_drive_the_terminal() {
        let text = "a\x1b[2J\u{9b}31m\r\u{7}\u{202e}b\u{0}\tc\nd";
        assert_eq!(escape(text), "a\\x1b[2J\\x9b31m\\r\\x07\\u{202e}b\\x00\tc\nd");
        assert_eq!(escape_line("a\n\tb"), "a\\n\\tb");
        assert_eq!(PIPE.foreign(text), text, "a pipe gets the bytes");
        assert!(!PLAIN.foreign(text).contains('\x1b'));
    }

    #[test]
    fn ordinary_text_is_not_escaped() {
        let text = "héllo 喷油嘴 👩🏽‍🔧 עברית \u{301}";
        assert_eq!(escape(text), text);
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_beside_wide_characters() {
        assert_eq!(wrap("four of the nine bolts", 11), ["four of the", "nine bolts"]);
        assert_eq!(wrap("喷油嘴测完了", 5), ["喷油", "嘴测", "完了"]);
        assert_eq!(wrap("ab 喷油嘴", 5), ["ab 喷", "油嘴"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("a\n\nb", 10), ["a", "", "b"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn wrapping_loses_only_spaces_at_breaks() {
        let text = "Outvoted, and the blue is the better 深蓝色更好看 paint. 👩🏽‍🔧 loooooooooooooooong";
        for width in 2..40 {
            let lines = wrap(text, width);
            let squeeze = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            assert_eq!(squeeze(&lines.concat()), squeeze(text), "width {width}");
            // An emoji joined from several may be wider in one piece than its parts say; plain lines keep the width.
            assert!(
                lines.iter().filter(|l| !l.contains('\u{200d}')).all(|l| columns(l) <= width),
                "width {width}: {lines:?}"
            );
        }
    }

    #[test]
    fn query_words_are_marked() {
        let mark = |s: &str| COLOUR.mark(s);
        assert_eq!(highlight("nine bolts", "Bolts", COLOUR), format!("nine {}", mark("bolts")));
        assert_eq!(highlight("a launch", "launching", COLOUR), format!("a {}", mark("launch")));
        assert_eq!(highlight("art", "a", COLOUR), "art");
        assert_eq!(highlight("一个喷油嘴漏油", "喷油嘴", COLOUR), format!("一个{}漏油", mark("喷油嘴")));
        assert_eq!(highlight("nine bolts", "bolts", PLAIN), "nine bolts");
        assert_eq!(highlight("", "", COLOUR), "");
    }

    #[test]
    fn figures() {
        assert_eq!(count(1, "file", "files"), "1 file");
        assert_eq!(count(1_234_567, "file", "files"), "1 234 567 files");
        assert_eq!(count(0, "file", "files"), "0 files");
    }
}

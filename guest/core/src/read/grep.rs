//! Lines that contain something.

use super::{ReadFault, first_chars};
use regex::{Regex, RegexBuilder};
use std::collections::VecDeque;

/// How a pattern is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternOptions {
    /// It is a regular expression, in the syntax of the `regex` crate: no look-around, no back references, so that searching
    /// takes time in proportion to the text whatever the expression. Otherwise it is text.
    pub regex: bool,
    /// Letter case matters.
    pub case_sensitive: bool,
}

/// What is looked for within one line.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

/// Bytes that a compiled expression may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// How deep brackets may be nested in an expression.
const PATTERN_DEPTH_MAX: u32 = 100;

/// Characters of what is wrong with an expression that are told.
const SHOWN_CHARS: usize = 200;

impl Pattern {
    /// Of what a caller looks for.
    ///
    /// # Errors
    /// It is empty, no regular expression, or one that takes too much memory.
    pub fn new(pattern: &str, options: PatternOptions) -> Result<Self, ReadFault> {
        if pattern.is_empty() {
            return Err(ReadFault::EmptyPattern);
        }
        let source = if options.regex { pattern.to_owned() } else { regex::escape(pattern) };
        let built = RegexBuilder::new(&source)
            .case_insensitive(!options.case_sensitive)
            .size_limit(PATTERN_BYTES_MAX)
            .nest_limit(PATTERN_DEPTH_MAX)
            .build();
        match built {
            Ok(regex) => Ok(Self { regex }),
            Err(regex::Error::CompiledTooBig(most)) => Err(ReadFault::PatternTooLarge(most)),
            Err(error) => {
                let told = error.to_string();
                // The last line says what; those before draw where.
                let last = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(ReadFault::InvalidPattern(first_chars(last, SHOWN_CHARS).0.to_owned()))
            }
        }
    }

    /// Whether a line contains it.
    pub fn is_in(&self, line: &str) -> bool {
        self.regex.is_match(line)
    }
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrepLimits {
    /// Lines that are shown; further ones are counted.
    pub matches: usize,
    /// Lines shown before and after each.
    pub context: usize,
    /// Characters of a line that are shown.
    pub line_chars: usize,
}

/// A line that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its file.
    pub path: String,
    /// Its number in the file, from 1.
    pub line: u64,
    /// The line, as far as it is shown.
    pub text: String,
    /// Whether it is longer.
    pub cut: bool,
    /// It contains what is looked for; otherwise it stands near one that does.
    pub is_match: bool,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Lines that contain it, and lines near them, in order, each once.
    pub lines: Vec<Found>,
    /// How many lines contain it, those that are not shown included.
    pub total: u64,
    /// Not all of them are shown.
    pub truncated: bool,
}

impl Matches {
    /// A line each, `path:line: text`; where it only stands near one, `path-line- text`.
    pub fn to_text(&self) -> String {
        let line = |found: &Found| {
            let mark = if found.is_match { ':' } else { '-' };
            format!("{}{mark}{}{mark} {}", found.path, found.line, found.text)
        };
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A search under way: files go in one after the other.
#[derive(Clone, Debug)]
pub struct Grep<'p> {
    pattern: &'p Pattern,
    limits: GrepLimits,
    shown: usize,
    found: Matches,
}

impl<'p> Grep<'p> {
    /// Nothing was looked through yet.
    pub fn new(pattern: &'p Pattern, limits: GrepLimits) -> Self {
        Self { pattern, limits, shown: 0, found: Matches::default() }
    }

    /// Looks through the lines of a file that a reader may see, with their numbers, in order.
    pub fn file<'t>(&mut self, path: &str, lines: impl IntoIterator<Item = (u64, &'t str)>) {
        let mut before: VecDeque<(u64, &str)> = VecDeque::new();
        let mut after = 0;
        for (number, line) in lines {
            let is_match = self.pattern.is_in(line);
            if is_match {
                self.found.total += 1;
            }
            if is_match && self.shown < self.limits.matches {
                self.shown += 1;
                for (number, line) in before.drain(..) {
                    self.show(path, number, line, false);
                }
                self.show(path, number, line, true);
                after = self.limits.context;
                continue;
            }
            if after > 0 {
                after -= 1;
                self.show(path, number, line, is_match);
                continue;
            }
            if self.limits.context > 0 {
                if before.len() == self.limits.context {
                    before.pop_front();
                }
                before.push_back((number, line));
            }
        }
    }

    fn show(&mut self, path: &str, number: u64, line: &str, is_match: bool) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (text, cut) = first_chars(line, self.limits.line_chars);
        let found = Found { path: path.to_owned(), line: number, text: text.to_owned(), cut, is_match };
        self.found.lines.push(found);
    }

    /// What was found.
    pub fn finish(mut self) -> Matches {
        self.found.truncated = self.found.total > self.shown as u64;
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn pattern(text: &str, regex: bool, case_sensitive: bool) -> Pattern {
        Pattern::new(text, PatternOptions { regex, case_sensitive }).expect(text)
    }

    #[test]
    fn text_and_expressions() {
        for (text, regex, case_sensitive, line, found) in [
            ("x.y", false, false, "a (X.Y) b", true),
            ("x.y", false, false, "xzy", false),
            ("x.y", true, false, "xzy", true),
            ("x.y", false, true, "X.Y", false),
            ("ΣΑΣ", false, false, "σας", true),
            ("喜欢", false, false, "喜欢 Tea", true),
            (r"^\d{4}\b", true, false, "2026 on", true),
            (r"\s$", true, true, "x\u{3000}", true),
        ] {
            assert_eq!(pattern(text, regex, case_sensitive).is_in(line), found, "{text} in {line}");
        }
    }

    #[test]
    fn what_is_no_pattern() {
        let reason = |text: &str| {
            Pattern::new(text, PatternOptions { regex: true, case_sensitive: false }).map_err(|fault| fault.reason())
        };
        assert_eq!(reason("").err(), Some("empty-pattern"));
        let deep = "(".repeat(200) + &")".repeat(200);
        for text in ["(", "a{2,1}", r"(?<=a)b", r"(a)\1", r"\p{Nonsense}", deep.as_str()] {
            assert_eq!(reason(text).err(), Some("invalid-pattern"), "{text}");
        }
        assert_eq!(reason(r"(\w{1,500}){1,500}").err(), Some("pattern-too-large"));
        let told = Pattern::new("(", PatternOptions { regex: true, case_sensitive: false }).unwrap_err().to_string();
        assert!(told.contains("unclosed group") && !told.contains('\n'), "{told}");
    }

    #[test]
    fn no_expression_makes_it_slow() {
        let line = "a".repeat(20_000);
        for text in ["(a*)*b", "(a|aa)+$b", "(a?){50}a{50}b", "(.*)*(.*)*x"] {
            let start = Instant::now();
            assert!(!pattern(text, true, true).is_in(&line));
            assert!(start.elapsed().as_secs() < 20, "{text}");
        }
    }

    fn grep(context: usize, matches: usize) -> Matches {
        let pattern = pattern("m", false, false);
        let mut grep = Grep::new(&pattern, GrepLimits { matches, context, line_chars: 3 });
        grep.file("a", (1..).zip(["1", "2", "m3", "m4", "5", "6", "7", "m8 and more"]));
        grep.file("b", (1..).zip(["1\r", "m2\r"]));
        grep.finish()
    }

    #[test]
    fn lines_near_a_match_come_once_and_in_order() {
        assert_eq!(grep(0, 9).to_text(), "a:3: m3\na:4: m4\na:8: m8 \nb:2: m2");
        assert_eq!(grep(1, 9).to_text(), "a-2- 2\na:3: m3\na:4: m4\na-5- 5\na-7- 7\na:8: m8 \nb-1- 1\nb:2: m2");
        assert_eq!(grep(2, 9).lines.len(), 10);
        let some = grep(1, 1);
        assert_eq!((some.to_text().as_str(), some.total, some.truncated), ("a-2- 2\na:3: m3\na:4: m4", 4, true));
        let found = grep(0, 9);
        assert!(!found.truncated && found.lines[2].cut && !found.lines[0].cut);
    }
}

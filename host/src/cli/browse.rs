//! `recollex browse`: lists files.

use recollex::Session;
use recollex::workspace::ListedFile;
use serde::Serialize;

use super::args::Browse;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::{Look, bytes, columns, escape_line};
use super::views::FileView;

#[derive(Serialize)]
struct Rest {
    /// There are more files than were asked for.
    truncated: bool,
}

/// Runs the verb. Pages are asked for one after the other and written as they come.
pub fn run(args: &Browse, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.reading_session()?;
    let (mut shown, mut truncated) = (0_u64, false);
    if context.out.json {
        // The first page decides between a result and an error: only then does the document begin.
        let mut listing = None;
        each(&mut session, args, |file| {
            listing.get_or_insert_with(|| context.out.listing("files")).item(&FileView::from(file));
            shown += 1;
            !context.out.closed()
        })
        .map(|more| truncated = more)?;
        listing.unwrap_or_else(|| context.out.listing("files")).finish(&Rest { truncated });
    } else {
        let mut tree = Tree::new(context.out.look);
        each(&mut session, args, |file| {
            tree.lines(file).iter().for_each(|line| context.out.line(line));
            shown += 1;
            !context.out.closed()
        })
        .map(|more| truncated = more)?;
    }
    if truncated && !context.out.closed() {
        context.hint("There are more files. List more with --max N.");
    }
    if shown == 0 {
        let why = session.status().ok().and_then(|status| context.nothing_there(&status));
        context.hint(&why.unwrap_or_else(|| match &*args.prefix {
            "" => "There are no files yet.".to_owned(),
            prefix => format!("There are no files below {prefix}"),
        }));
        return Ok(Exit::NOTHING);
    }
    Ok(Exit::DONE)
}

/// Calls `with` for each file, as long as it answers true. Whether there are more files than were asked for.
fn each(session: &mut Session, args: &Browse, mut with: impl FnMut(&ListedFile) -> bool) -> Result<bool, Failure> {
    let mut left = args.max.unwrap_or(u32::MAX);
    let mut cursor = None;
    loop {
        // 0 is the component's own measure for a page; without a maximum that is what is wanted.
        let page = session.browse(&args.prefix, cursor.as_deref(), args.max.map_or(0, |_| left))?;
        for file in &page.files {
            if left == 0 {
                return Ok(true);
            }
            left -= u32::from(args.max.is_some());
            if !with(file) {
                return Ok(false);
            }
        }
        match page.next {
            None => return Ok(false),
            Some(_) if left == 0 => return Ok(true),
            Some(next) => cursor = Some(next),
        }
    }
}

/// Turns a sorted list of paths into an indented one, a file at a time.
struct Tree {
    look: Look,
    open: Vec<String>,
}

impl Tree {
    fn new(look: Look) -> Self {
        Self { look, open: Vec::new() }
    }

    fn lines(&mut self, file: &ListedFile) -> Vec<String> {
        let parts: Vec<&str> = file.path.split('/').collect();
        let (name, directories) = parts.split_last().map_or(("", &[][..]), |(name, rest)| (*name, rest));
        let common = self.open.iter().zip(directories).take_while(|(a, b)| a == *b).count();
        self.open.truncate(common);
        let mut lines = Vec::new();
        for directory in directories.iter().skip(common) {
            let indent = "  ".repeat(self.open.len());
            lines.push(format!("{indent}{}", self.look.strong(&format!("{}/", self.shown(directory)))));
            self.open.push((*directory).to_owned());
        }
        let entry = format!("{}{}", "  ".repeat(directories.len()), self.shown(name));
        let gap = " ".repeat(44_usize.saturating_sub(columns(&entry)).max(2));
        let derived = if file.derived { "  derived" } else { "" };
        lines.push(format!("{entry}{gap}{}", self.look.faint(&format!("{:>12}{derived}", bytes(file.bytes)))));
        lines
    }

    /// A name stays on its line, whatever is in it.
    fn shown(&self, name: &str) -> String {
        escape_line(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> ListedFile {
        ListedFile { path: path.to_owned(), bytes: 10, derived: false }
    }

    #[test]
    fn directories_are_named_once() {
        let mut tree = Tree::new(Look::default());
        let paths = ["core.md", "sources/p/_v2/a.md", "sources/p/_v2/b.md", "sources/q/_v2/a.md", "topics/x.md"];
        let lines: Vec<String> = paths.iter().flat_map(|path| tree.lines(&file(path))).collect();
        let names: Vec<&str> = lines.iter().map(|line| line.trim_end_matches("10 B").trim_end()).collect();
        assert_eq!(
            names,
            [
                "core.md",
                "sources/",
                "  p/",
                "    _v2/",
                "      a.md",
                "      b.md",
                "  q/",
                "    _v2/",
                "      a.md",
                "topics/",
                "  x.md"
            ]
        );
        assert!(
            lines.iter().filter(|line| line.contains("10 B")).all(|line| line.len() == lines[0].len()),
            "{lines:?}"
        );
    }

    #[test]
    fn a_name_cannot_leave_its_line() {
        let mut tree = Tree::new(Look::default());
        let lines = tree.lines(&file("a\nb/c\x1b[2J.md"));
        assert_eq!(lines[0], "a\\nb/");
        assert!(lines[1].starts_with("  c\\x1b[2J.md"));
    }
}

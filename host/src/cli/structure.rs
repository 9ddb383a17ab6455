//! `recollex browse --blocks`: lists the blocks of topics.

use recollex::Session;
use recollex::workspace::ListedBlock;
use serde::Serialize;

use super::args::Browse;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::terminal::{Look, one_line};

#[derive(Serialize)]
struct Block<'a> {
    id: &'a str,
    others: &'a [String],
    path: &'a str,
    line: u64,
    headings: &'a [String],
    text: &'a str,
    time: Option<&'a str>,
    sound: bool,
}

impl<'a> From<&'a ListedBlock> for Block<'a> {
    fn from(block: &'a ListedBlock) -> Self {
        let ListedBlock { id, others, path, line, headings, text, time, sound } = block;
        Self { id, others, path, line: *line, headings, text, time: time.as_deref(), sound: *sound }
    }
}

#[derive(Serialize)]
struct Rest<'a> {
    /// What references to these blocks name.
    workspace_id: Option<&'a str>,
    /// There are more blocks than were asked for.
    truncated: bool,
}

/// Runs the verb. Pages are asked for one after the other and written as they come.
pub fn run(args: &Browse, context: &Context) -> Result<Exit, Failure> {
    let mut session = context.session()?;
    let (mut shown, mut truncated) = (0_u64, false);
    if context.out.json {
        // The first page decides between a result and an error: only then does the document begin.
        let mut listing = None;
        each(&mut session, args, |block| {
            listing.get_or_insert_with(|| context.out.listing("blocks")).item(&Block::from(block));
            shown += 1;
            !context.out.closed()
        })
        .map(|more| truncated = more)?;
        let workspace = session.status()?.workspace;
        let rest = Rest { workspace_id: workspace.as_deref(), truncated };
        listing.unwrap_or_else(|| context.out.listing("blocks")).finish(&rest);
    } else {
        let mut topic = String::new();
        each(&mut session, args, |block| {
            if block.path != topic {
                topic.clone_from(&block.path);
                let path = context.out.look.foreign(&one_line(&topic));
                context.out.line(&context.out.look.strong(&path));
            }
            context.out.line(&line(context.out.look, block));
            shown += 1;
            !context.out.closed()
        })
        .map(|more| truncated = more)?;
    }
    if truncated && !context.out.closed() {
        context.hint("There are more blocks. List more with --max N.");
    }
    if shown == 0 {
        let why = session.status().ok().and_then(|status| context.nothing_there(&status));
        context.hint(&why.unwrap_or_else(|| "No topic there has such a block.".to_owned()));
        return Ok(Exit::NOTHING);
    }
    Ok(Exit::DONE)
}

/// As FORMAT.md has it, with what is wrong behind.
fn line(look: Look, block: &ListedBlock) -> String {
    let headings = format!("[{}]", block.headings.join(" / "));
    let [id, headings, text] = [&block.id, &headings, &block.text].map(|part| look.foreign(&one_line(part)));
    let line = format!("    ^{id}  {headings}  {text}");
    let line = line.trim_end();
    if block.sound { line.to_owned() } else { format!("{line}  {}", look.warning("(recollex verify: not sound)")) }
}

/// Calls `with` for each block, as long as it answers true. Whether there are more blocks than were asked for.
fn each(session: &mut Session, args: &Browse, mut with: impl FnMut(&ListedBlock) -> bool) -> Result<bool, Failure> {
    let mut left = args.max.unwrap_or(u32::MAX);
    let mut cursor = None;
    loop {
        let matching = args.matching.as_deref().unwrap_or_default();
        // 0 is the component's own measure for a page; without a maximum that is what is wanted.
        let page = session.structure(&args.prefix, matching, cursor.as_deref(), args.max.map_or(0, |_| left))?;
        for block in &page.blocks {
            if left == 0 {
                return Ok(true);
            }
            left -= u32::from(args.max.is_some());
            if !with(block) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_stays_on_its_line() {
        let block = ListedBlock {
            id: "k3x9q2ab".to_owned(),
            others: Vec::new(),
            path: "topics/a.md".to_owned(),
            line: 3,
            headings: vec!["A".to_owned(), "B\nC".to_owned()],
            text: "Tea\x1b[2J at four.".to_owned(),
            time: None,
            sound: true,
        };
        let shown = line(Look::default(), &block);
        assert!(shown.starts_with("    ^k3x9q2ab  [A / B"), "{shown}");
        assert!(!shown.contains(['\n', '\x1b']), "{shown:?}");
        let shown = line(Look::default(), &ListedBlock { sound: false, ..block });
        assert!(shown.ends_with("(recollex verify: not sound)"), "{shown}");
    }
}

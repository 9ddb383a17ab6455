//! Receipts: what commits of topics say of the turns they wrote (D46).
//!
//! Topics come before marks. Whoever dies between the two has written turns that nothing marks; the receipt, which is part of
//! the commit of the topics, says which. The next one marks them and does not write them again.

use super::node::id_of;
use super::session::Session;
use crate::ids::WorkspaceId;
use crate::import::value::{document, fields, items};
use crate::text::json_string;
use std::collections::BTreeSet;

/// Turns that are in topics and may lack their marks: those of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The session's id, as its store has it.
    pub session: String,
    /// Ids of its nodes.
    pub nodes: Vec<String>,
}

/// All receipts whose turns may still lack marks. Usually none; as many as batches were written by writers that died, or are
/// about to mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipts {
    open: Vec<Receipt>,
}

impl Receipts {
    /// The file's path within the runtime directory. A commit of topics that writes turns adds a line to it; whoever has made the
    /// marks takes the line away.
    pub const PATH: &'static str = "recollex-receipts.jsonl";

    /// Reads the file. A line that is none says nothing: what its turns are cited by tells of them too.
    #[must_use]
    pub fn parse(content: &str) -> Self {
        Self { open: content.lines().filter_map(receipt).collect() }
    }

    /// The file's content.
    #[must_use]
    pub fn file(&self) -> String {
        let line = |receipt: &Receipt| {
            let nodes: Vec<String> = receipt.nodes.iter().map(|id| json_string(id)).collect();
            format!("{{\"session\":{},\"nodes\":[{}]}}\n", json_string(&receipt.session), nodes.join(","))
        };
        self.open.iter().map(line).collect()
    }

    /// Those there are, in the order in which they were written.
    #[must_use]
    pub fn open(&self) -> &[Receipt] {
        &self.open
    }

    /// Adds one: with the commit of the topics that wrote its turns.
    pub fn add(&mut self, receipt: Receipt) {
        self.open.push(receipt);
    }

    /// The nodes of a session that are written and not marked: what is marked before anything else of it is written. Each once,
    /// in the order of the receipts.
    #[must_use]
    pub fn unmarked<'r>(&'r self, id: &str, session: &Session, workspace: WorkspaceId) -> Vec<&'r str> {
        let workspace = workspace.to_string();
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for receipt in self.open.iter().filter(|receipt| receipt.session == id) {
            for node in &receipt.nodes {
                let is_open = session.place(node).is_some_and(|place| !session.is_marked(place, &workspace));
                if is_open && seen.insert(node.as_str()) {
                    found.push(node.as_str());
                }
            }
        }
        found
    }

    /// Takes away those of a session whose nodes are marked or no longer there. Whether there were any.
    pub fn settle(&mut self, id: &str, session: &Session, workspace: WorkspaceId) -> bool {
        let workspace = workspace.to_string();
        let before = self.open.len();
        self.open.retain(|receipt| {
            let is_open =
                |node: &String| session.place(node).is_some_and(|place| !session.is_marked(place, &workspace));
            receipt.session != id || receipt.nodes.iter().any(is_open)
        });
        self.open.len() != before
    }
}

fn receipt(line: &str) -> Option<Receipt> {
    let [session, nodes] = fields(document(line)?, ["session", "nodes"])?;
    let mut found = Vec::new();
    let mut sound = true;
    items(nodes?, &mut |node| {
        match id_of(Some(node)) {
            Some(id) => found.push(id),
            None => sound = false,
        }
        true
    })?;
    sound.then_some(Receipt { session: id_of(session)?, nodes: found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is() {
        let mut receipts = Receipts::default();
        assert_eq!(receipts.file(), "");
        receipts.add(Receipt { session: "s \"1\"".into(), nodes: vec!["a\n".into(), "你".into()] });
        receipts.add(Receipt { session: "t".into(), nodes: vec![] });
        let file = receipts.file();
        assert_eq!(Receipts::parse(&file), receipts);
        for none in [
            "{}",
            "[]",
            "{\"session\":\"s\"}",
            "{\"session\":\"\",\"nodes\":[]}",
            "{\"session\":\"s\",\"nodes\":[1]}",
            "{\"ses",
        ] {
            assert_eq!(Receipts::parse(none), Receipts::default(), "{none}");
            assert_eq!(Receipts::parse(&format!("{file}{none}")), receipts, "{none}");
        }
    }
}

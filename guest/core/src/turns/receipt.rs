//! Receipts: what a commit of topics says of the turns it wrote (D46).
//!
//! Topics come before marks. Whoever dies between the two has written turns that nothing marks; the receipt, which is part of
//! the commit of the topics, says which. The next one marks them and does not write them again.

use super::session::Session;
use crate::ids::WorkspaceId;
use crate::import::value::{document, fields, items, name};
use crate::text::json_string;

/// Turns that are in topics and may lack their mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The session's id, as its store has it.
    pub session: String,
    /// Ids of its nodes.
    pub nodes: Vec<String>,
}

impl Receipt {
    /// The file's path within the runtime directory. A commit of topics that writes turns puts it there; the next commit after
    /// the marks are made takes it away.
    pub const PATH: &'static str = "turns-receipt.json";

    /// Reads the file. None if it is none: then nothing is known of any turn, and citations alone tell.
    #[must_use]
    pub fn parse(content: &str) -> Option<Self> {
        let [session, nodes] = fields(document(content)?, ["session", "nodes"])?;
        let mut found = Vec::new();
        let mut sound = true;
        items(nodes?, &mut |node| {
            match name(Some(node)) {
                Some(id) => found.push(id.into_owned()),
                None => sound = false,
            }
            true
        })?;
        sound.then_some(Self { session: name(session)?.into_owned(), nodes: found })
    }

    /// The file's content.
    #[must_use]
    pub fn file(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|id| json_string(id)).collect();
        format!("{{\"session\":{},\"nodes\":[{}]}}\n", json_string(&self.session), nodes.join(","))
    }

    /// The nodes of it that are not marked yet: what is marked before anything else is written.
    #[must_use]
    pub fn unmarked<'r>(&'r self, session: &Session, workspace: WorkspaceId) -> Vec<&'r str> {
        let workspace = workspace.to_string();
        let is_open = |id: &&str| session.place(id).is_some_and(|place| !session.is_marked(place, &workspace));
        self.nodes.iter().map(String::as_str).filter(is_open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let receipt = Receipt { session: "s \"1\"".into(), nodes: vec!["a\n".into(), "你".into()] };
        assert_eq!(Receipt::parse(&receipt.file()), Some(receipt));
        for none in [
            "",
            "{}",
            "[]",
            "{\"session\":\"s\"}",
            "{\"session\":\"\",\"nodes\":[]}",
            "{\"session\":\"s\",\"nodes\":[1]}",
        ] {
            assert_eq!(Receipt::parse(none), None, "{none}");
        }
    }
}

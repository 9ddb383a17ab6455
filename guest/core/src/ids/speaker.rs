//! Who spoke, as the runtime said it.

use crate::text::{decode, encode_speaker, identity_part, is_canonical_speaker};

/// A speaker's id, verbatim as the runtime gave it. Empty: the runtime vouches for a name only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpeakerId(String);

impl SpeakerId {
    /// Any text is an id.
    pub fn new(raw: &str) -> Self {
        Self(raw.to_owned())
    }

    /// Reads the value of a speaker marker. None unless it is exactly what [`SpeakerId::marker`] would write.
    pub fn from_marker(encoded: &str) -> Option<Self> {
        if is_canonical_speaker(encoded) { decode(encoded).map(Self) } else { None }
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of the marker that carries it.
    pub fn marker(&self) -> String {
        encode_speaker(&self.0)
    }
}

/// The label of a record's first line (FORMAT.md, "Labels"): `display (id)` if both are given and differ, else the one
/// that is given, else the role; the parts normalised, and the whole again. Empty if nothing is left: such a record
/// cannot be written.
pub fn label(display: &str, id: &str, role: &str) -> String {
    match (identity_part(display).as_str(), identity_part(id).as_str()) {
        ("", "") => identity_part(role),
        (one, "") | ("", one) => one.to_owned(),
        (display, id) if display == id => id.to_owned(),
        // Two parts of full length do not fit: the whole is cut like a part.
        (display, id) => identity_part(&format!("{display} ({id})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        assert_eq!(label("Ada", "7391", "user"), "Ada (7391)");
        assert_eq!(label(" \u{200b}", "7391", "user"), "7391");
        assert_eq!(label("Ada", "Ada", "user"), "Ada");
        assert_eq!(label("", "", "[u]:"), "(u)：");
        assert_eq!(label("\n", "", "\0"), "");
        // A part cut once is one character longer than the limit, and stays so.
        let long = "D".repeat(70);
        assert_eq!(label(&long, "", ""), format!("{}…", "D".repeat(64)));
        assert_eq!(label(&long, "7391", ""), format!("{}…", "D".repeat(64)));
    }

    #[test]
    fn markers() {
        for raw in ["", "a-b/c", "你", "\0\n>"] {
            let id = SpeakerId::new(raw);
            assert_eq!(SpeakerId::from_marker(&id.marker()), Some(id));
        }
        assert_eq!(SpeakerId::from_marker("a-b"), None);
    }
}

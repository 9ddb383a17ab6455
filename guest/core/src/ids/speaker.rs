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
/// that is given, else the role; each normalised. Empty if nothing is left: such a record cannot be written.
pub fn label(display: &str, id: &str, role: &str) -> String {
    let named = named(&identity_part(display), &identity_part(id));
    if named.is_empty() { identity_part(role) } else { named }
}

/// [`label`] without a role, of parts that are normalised already.
pub(crate) fn named(display: &str, id: &str) -> String {
    match (display, id) {
        (display, "") => display.to_owned(),
        ("", id) => id.to_owned(),
        (display, id) if display == id => id.to_owned(),
        (display, id) => format!("{display} ({id})"),
    }
}

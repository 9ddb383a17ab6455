//! What one update may be.

/// Limits of a request. Field names are the settings' (`update.sources-max`, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sources that it quotes.
    pub sources: u64,
    /// Bytes of their texts together.
    pub source_bytes: u64,
    /// Topics that it gives or patches, or operations on records.
    pub changes: u64,
    /// Bytes of the patch, or of all that the changes say together.
    pub change_bytes: u64,
}

impl Limits {
    /// The setting's name of [`Limits::sources`].
    pub const SOURCES: &'static str = "update.sources-max";
    /// The setting's name of [`Limits::source_bytes`].
    pub const SOURCE_BYTES: &'static str = "update.source-bytes";
    /// The setting's name of [`Limits::changes`].
    pub const CHANGES: &'static str = "update.changes-max";
    /// The setting's name of [`Limits::change_bytes`].
    pub const CHANGE_BYTES: &'static str = "update.change-bytes";
}

impl Default for Limits {
    fn default() -> Self {
        Self { sources: 64, source_bytes: 256_000, changes: 64, change_bytes: 512_000 }
    }
}

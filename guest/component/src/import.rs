//! PLACEHOLDER: an import under way.

use crate::bindings::exports::recollex::memory::workspace as wit;

/// An import under way.
pub(crate) struct Importing;

impl wit::GuestImporting for Importing {
    fn push_text(
        &self,
        _file: String,
        _text: String,
        _last: bool,
    ) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        Ok(Vec::new())
    }

    fn push_bytes(
        &self,
        _file: String,
        _data: Vec<u8>,
        _last: bool,
    ) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        Ok(Vec::new())
    }

    fn finish(&self) -> Result<Vec<wit::ImportedConversation>, wit::Error> {
        Ok(Vec::new())
    }
}

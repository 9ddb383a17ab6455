//! What the store tells of a workspace that no file in it says, as findings.
//!
//! Knows how such a thing is shown. What there is to tell, and its codes, are the host's.

use recollex_core::source::FindingCode;

use crate::bindings::recollex::memory::store;
use crate::bindings::recollex::memory::types::{Finding, Health, Severity};
use crate::convert;

/// The troubles at or below `prefix`; with an empty one, those too that are nowhere in particular. That the store cannot
/// tell is itself a finding.
pub(crate) fn below(prefix: &str) -> Vec<Finding> {
    let troubles = match store::troubles() {
        Ok(troubles) => troubles,
        Err(error) => {
            let message =
                format!("what the store knows of this workspace could not be asked: {}", convert::in_words(&error));
            return vec![finding(FindingCode::StoreSilent.as_str().to_owned(), None, message)];
        }
    };
    let is_below = |path: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    troubles
        .into_iter()
        .filter(|trouble| prefix.is_empty() || trouble.path.as_deref().is_some_and(is_below))
        .map(|trouble| finding(trouble.code, trouble.path, trouble.message))
        .collect()
}

/// The health of a workspace whose files say `health`, and that may have troubles beside it.
pub(crate) fn worsen(health: Health, is_troubled: bool) -> Health {
    if is_troubled && matches!(health, Health::Empty | Health::Ok) { Health::Degraded } else { health }
}

fn finding(code: String, path: Option<String>, message: String) -> Finding {
    Finding { code, severity: Severity::Warning, path, line: None, subject: None, excerpt: None, message }
}

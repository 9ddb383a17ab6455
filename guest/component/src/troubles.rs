//! What the store tells of a workspace that no file of its tree says, as findings.
//!
//! Knows how such a thing is shown, and which files of the runtime directory are read. What else there is to tell, and its
//! codes, are the host's.

use recollex_core::session::WorkspaceId;
use recollex_core::source::FindingCode;
use recollex_core::trust::{AUDIT_PATH, Quota};
use recollex_core::views::CORE_STATE;

use crate::bindings::recollex::memory::store::{self, Area, StoreError};
use crate::bindings::recollex::memory::types::{Finding, Health, Severity};
use crate::convert;
use crate::survey::RUNTIME_FILE;

/// What changes and views rest on in the runtime directory. Its settings file has a finding of its own.
const RUNTIME_FILES: [&str; 5] = [WorkspaceId::PATH, RUNTIME_FILE.0, CORE_STATE, AUDIT_PATH, Quota::PATH];

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

/// What there is in the runtime directory and cannot be read: nothing that needs it can be done.
pub(crate) fn runtime() -> Vec<Finding> {
    let unreadable = |file: &str, error: &StoreError| Finding {
        severity: Severity::Error,
        ..finding(
            FindingCode::UnreadableFile.as_str().to_owned(),
            Some(convert::runtime_path(file)),
            format!("{}; what needs it fails until it can be read", convert::in_words(error)),
        )
    };
    // If not even names can be read, that is told once.
    if let Err(error) = store::entries(Area::Runtime, "", None, 1)
        && is_fault(&error)
    {
        return vec![unreadable("", &error)];
    }
    let fault = |file: &&str| store::read_bytes(Area::Runtime, file, None, 0, 1).err().filter(is_fault);
    RUNTIME_FILES.iter().filter_map(|file| fault(file).map(|error| unreadable(file, &error))).collect()
}

fn is_fault(error: &StoreError) -> bool {
    !matches!(error, StoreError::NotFound | StoreError::Changed)
}

/// The health of a workspace whose files say `health`, and that may have troubles beside it.
pub(crate) fn worsen(health: Health, is_troubled: bool) -> Health {
    if is_troubled && matches!(health, Health::Empty | Health::Ok) { Health::Degraded } else { health }
}

fn finding(code: String, path: Option<String>, message: String) -> Finding {
    Finding { code, severity: Severity::Warning, path, line: None, subject: None, excerpt: None, message }
}

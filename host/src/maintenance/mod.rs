//! What a workspace needs besides memory itself: an examination of the machine's side, and a copy elsewhere.
//!
//! Works on a directory with the store and the lock, without a component: knows files, names and modes, and nothing of
//! what the files mean. Who may ask for what is for the caller to decide.

mod backup;
mod bundle;
mod doctor;
mod restore;

pub use backup::{Backup, backup, name};
pub use bundle::{
    BackupError, FILES_MAX, FORMAT, MANIFEST_BYTES_MAX, Manifest, Member, Progress, RUNTIME_FILES, check, utc,
};
pub use doctor::{Ailment, Cure, Examination, Machine, examine};
pub use restore::{Plan, plan, restore};

#[cfg(test)]
mod tests;

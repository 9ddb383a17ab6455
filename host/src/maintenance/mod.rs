//! What a workspace needs besides memory itself: an examination of the machine's side.
//!
//! Works on a directory with the store and the lock, without a component: knows files, names and modes, and nothing of
//! what the files mean. Who may ask for what is for the caller to decide.

mod doctor;

pub use doctor::{Ailment, Cure, Examination, Machine, examine, glance};

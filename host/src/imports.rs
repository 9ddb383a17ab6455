//! What the component imports, as this host gives it.

/// The host's side of a lock guard handed to the component.
pub struct HeldGuard;

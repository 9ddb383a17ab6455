//! Updates of topics as tests make them, in their own process and in one that they start (`--bin crash-child`).

use std::error::Error;
use std::path::Path;

use recollex::workspace::{Provenance, UpdateOptions};
use recollex::{OpenOptions, Runtime, RuntimeOptions, Session, Tier};
use serde_json::json;

/// The record that claims rest on; whoever makes the workspace archives it.
pub const RECORD: &str = "p/t/m1";

/// The component, compiled once for all processes that have this cache.
///
/// # Errors
/// As the host's.
pub fn runtime(cache: &Path) -> Result<Runtime, recollex::Error> {
    Runtime::new(RuntimeOptions { cache: Some(cache.to_path_buf()), ..RuntimeOptions::default() })
}

/// The owner on a workspace.
///
/// # Errors
/// As the host's.
pub fn session(runtime: &Runtime, root: &Path) -> Result<Session, recollex::Error> {
    Session::open(runtime, root, OpenOptions::new(Tier::Owner).principal("owner"))
}

/// Sources may be quoted.
#[must_use]
pub fn quoting() -> UpdateOptions {
    let provenance = Provenance {
        speaker_kind: "owner".to_owned(),
        speaker_id: "u1".to_owned(),
        speaker_display: Some("Ada".to_owned()),
        origin: "session/turn".to_owned(),
    };
    UpdateOptions { provenance: Some(provenance), dry_run: false }
}

/// A request for one more claim at the end of a topic that everybody writes to.
#[must_use]
pub fn claim(base: &str, content: &str) -> String {
    let destination = json!({"topic_path": "topics/claims.md", "headings": ["Claims"], "position": "end"});
    let record = json!({"op": "create_record", "content": content, "time": "2026-01-02", "source_refs": [RECORD],
                        "destination": destination});
    json!({"base_revision": base, "memory_changes": [record]}).to_string()
}

/// Adds `count` claims, each for the revision that was last heard of: one's own, or the one that a conflict told. Returns how
/// many conflicts there were.
///
/// # Errors
/// Any other than a conflict, and one that tells the revision that the update was made for.
pub fn add_claims(session: &mut Session, name: &str, count: u32) -> Result<u32, Box<dyn Error>> {
    let mut base = session.status()?.revision;
    let mut conflicts = 0;
    for number in 1..=count {
        loop {
            match session.update(&claim(&base, &format!("Claim {name} {number}.")), &quoting()) {
                Ok(updated) => {
                    base = updated.revision;
                    break;
                }
                Err(recollex::Error::Memory(recollex::types::Error::Conflict(fresh))) if fresh != base => {
                    base = fresh;
                    conflicts += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(conflicts)
}

//! Rows of `markers_suffix.jsonl`: turns one behind the other, some of them marked, and what is owed.

use recollex_core::ids::WorkspaceId;
use recollex_core::source::Limits;
use recollex_core::time::Zone;
use recollex_core::turns::{Heads, SessionReader, mark_line};
use serde_json::{Value, json};

use crate::{Input, Malformed, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let texts = |name: &str| input.field(name)?.elements()?.map(|id| id.text()).collect::<Result<Vec<_>, Malformed>>();
    let (records, marked) = (texts("records")?, texts("marked")?);
    let workspace = WorkspaceId::new([1, 2, 3, 4]);
    let mut reader = SessionReader::new("openprogram", "s", &Zone::utc(), &Limits::default());
    let mut before = Value::Null;
    for id in &records {
        let line = json!({"id": id, "role": "user", "content": id, "predecessor": before});
        reader.lines(format!("{line}\n").as_bytes());
        before = (*id).into();
    }
    reader.lines(mark_line(marked, workspace, true).as_bytes());
    let session = reader.finish(&Heads::default());
    let owed = match session.branches() {
        [] => Vec::new(),
        [branch] => session.owed_on(*branch, workspace).into_iter().map(|turn| turn.node.id.clone()).collect(),
        _ => return Err(input.fault("one line of turns has several branches")),
    };
    Ok(Outcome::Shown(owed.into()))
}

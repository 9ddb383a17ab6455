//! Rows of `writer_turns.jsonl`: turns as lines that a writer reads.

use recollex_core::turns::turn_line;

use crate::{Input, Malformed, Observed, Outcome};

pub(crate) fn observe(input: &Input<'_>) -> Observed {
    let Some(turns) = input.maybe("turns") else {
        let text = |name: &str| input.field(name)?.text();
        return Ok(Outcome::Shown(turn_line(text("ref")?, text("speaker")?, text("content")?).into()));
    };
    let line = |(turn, reference): (Input<'_>, Input<'_>)| {
        let parts = turn.elements()?.map(|part| part.text()).collect::<Result<Vec<_>, _>>()?;
        let [speaker, content] = parts[..] else { return Err(turn.fault("neither speaker nor text")) };
        Ok(turn_line(reference.text()?, speaker, content))
    };
    let lines = turns.elements()?.zip(input.field("refs")?.elements()?).map(line);
    Ok(Outcome::Shown(lines.collect::<Result<Vec<_>, Malformed>>()?.join("\n").into()))
}

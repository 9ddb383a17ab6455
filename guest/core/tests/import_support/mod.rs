//! What tests of imports share.

#![allow(dead_code, reason = "each test crate uses a part")]

use recollex_core::ids::label;
use recollex_core::import::{Conversation, Format, Import, Options};
use recollex_core::source::{Limits, Predecessor, Trust};
use recollex_core::time::Zone;
use std::ops::ControlFlow;

pub type Taken = Vec<Conversation>;

pub fn fixture(path: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/fixtures/import/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub fn options(format: Format) -> Options {
    Options { format, provider: None, thread: None, trust: Trust::Pending, zone: Zone::utc(), skipped_max: 100 }
}

/// Takes one file in, in pieces.
pub fn take(options: Options, limits: &Limits, file: &str, bytes: &[u8], piece: usize) -> Taken {
    take_files(options, limits, &[(file.to_owned(), bytes.to_vec())], piece)
}

/// Takes files in, in pieces.
pub fn take_files(options: Options, limits: &Limits, files: &[(String, Vec<u8>)], piece: usize) -> Taken {
    let mut import = Import::new(options, limits).expect("good options");
    let mut taken = Vec::new();
    let mut sink = |conversation| {
        taken.push(conversation);
        ControlFlow::Continue(())
    };
    for (file, bytes) in files {
        for piece in bytes.chunks(piece) {
            import.push(file, piece, false, &mut sink).expect("an open import");
        }
        import.push(file, &[], true, &mut sink).expect("an open import");
    }
    import.finish(&mut sink).expect("an open import");
    taken
}

/// A conversation as text.
pub fn show(conversation: &Conversation) -> String {
    let mut out = format!("{}/{}", conversation.provider, conversation.thread);
    out += &conversation.title.as_ref().map_or(" -".to_owned(), |title| format!(" {title:?}"));
    out += &format!(" branches {}", conversation.branches);
    if conversation.repeated > 0 {
        out += &format!(" repeated {}", conversation.repeated);
    }
    if !conversation.differs.is_empty() {
        out += &format!(" differs {}", conversation.differs.join(" "));
    }
    if let Some(problem) = &conversation.problem {
        out += &format!(" problem {}", problem.reason);
    }
    for (place, one) in conversation.records.iter().enumerate() {
        let record = &one.record;
        assert_eq!(record.ordinal, place as i64);
        let after = match &record.after {
            Predecessor::Start => "-",
            Predecessor::Before => "^",
            Predecessor::Record(id) => id,
        };
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let display = record.speaker_display.as_deref().unwrap_or_default();
        let speaker = label(display, record.speaker_id.as_deref().unwrap_or_default(), &record.role);
        let said = [&record.speaker_kind, &record.principal, &record.tier].map(word).join(" ");
        let is_plain = said == "- - -" && record.trust == "pending" && speaker == record.role;
        let who = if is_plain && !["notes"].contains(&&*record.provider) {
            speaker
        } else {
            format!("{speaker} {said} {}", record.trust)
        };
        let text = record.text.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"");
        out += &format!("\n  {} < {after} | {who} | {} | {text}", record.id, word(&record.time));
    }
    if conversation.skipped_count() > 0 {
        let words: Vec<String> = conversation
            .skipped
            .iter()
            .map(|skipped| format!("{} {}", skipped.item.as_deref().unwrap_or("?"), skipped.reason))
            .collect();
        out += &format!("\n  skipped {}: {}", conversation.skipped_count(), words.join(", "));
    }
    out
}

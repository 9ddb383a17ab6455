//! Which record counts, and what may be built on, over the files of a workspace.

use recollex_core::digest::Digest;
use recollex_core::ids::anchor_of;
use recollex_core::source::{
    Batch, EntryKind, Given, LegacyKind, Limits, NewRecord, NewerIds, RecordRef, Resolution, Trust, Unresolved,
    Verifier,
};
use std::collections::BTreeMap;

const V2: &str = "sources/p/_v2/t.md";
const LEGACY: &str = "sources/p/t.md";

fn message(id: &str) -> String {
    let anchor = anchor_of(&Digest::of(id.as_bytes()));
    format!("<a id=\"{anchor}\"></a>\n<!-- source-id:{id} -->\n[] user: hello\n\n")
}

/// A v2 archive with a record of this trust for each message.
fn archive(messages: &[(&str, &str)]) -> String {
    let record = |(id, trust): &(&str, &str)| NewRecord {
        provider: "p".into(),
        thread: "t".into(),
        id: (*id).into(),
        role: "user".into(),
        trust: (*trust).into(),
        ..NewRecord::default()
    };
    let batch = Batch::check(messages.iter().map(record).collect(), &Limits::default()).expect("good records");
    let plan = batch.compare(BTreeMap::new()).expect("no file").plan().expect("nothing to read");
    plan.changes[0].text.clone()
}

fn read(files: &[(&str, &str)], mut see: impl FnMut(&str, RecordRef<'_>)) {
    let mut verifier = Verifier::new(Given::InWorkspace, &Limits::default());
    for (path, text) in files {
        verifier.file(path, EntryKind::File);
        verifier.push_text(text, &mut see);
        verifier.end(&mut see);
    }
}

fn resolve(references: &[&str], files: &[(&str, &str)]) -> Resolution {
    let mut resolution = Resolution::of(references);
    read(files, |_, record| resolution.see(record));
    // In the other order it comes to the same.
    let mut backwards = Resolution::of(references);
    let reversed: Vec<_> = files.iter().rev().copied().collect();
    read(&reversed, |_, record| backwards.see(record));
    for reference in references {
        assert_eq!(backwards.trust_of(reference), resolution.trust_of(reference), "{reference}");
    }
    resolution
}

fn trust(reference: &str, files: &[(&str, &str)]) -> Option<Trust> {
    resolve(&[reference], files).trust_of(reference)
}

#[test]
fn frames_and_messages() {
    let trusted = archive(&[("m", "trusted")]);
    let pending = archive(&[("m", "pending")]);
    // No metadata: trusted everywhere (D17).
    let bare: String =
        trusted.lines().filter(|line| !line.contains("source-meta")).map(|line| format!("{line}\n")).collect();
    let legacy = message("p/t/m");
    for (files, expected) in [
        (vec![], None),
        (vec![(V2, &trusted)], Some(Trust::Trusted)),
        (vec![(V2, &bare)], Some(Trust::Trusted)),
        (vec![(V2, &pending)], Some(Trust::Pending)),
        (vec![(LEGACY, &legacy)], Some(Trust::Trusted)),
        // The frame counts, whatever an older archive says (D08).
        (vec![(V2, &pending), (LEGACY, &legacy)], Some(Trust::Pending)),
        // Elsewhere a header names nothing.
        (vec![("sources/p/u.md", &legacy)], None),
        (vec![("sources/zzz.md", &legacy)], None),
        (vec![("topics/p/t.md", &legacy)], None),
    ] {
        let files: Vec<(&str, &str)> = files.into_iter().map(|(path, text)| (path, text.as_str())).collect();
        assert_eq!(trust("p/t/m", &files), expected, "{files:?}");
    }
    // A frame that is not whole does not count, and the message does.
    let torn = &pending[..pending.len() - 1];
    assert_eq!(trust("p/t/m", &[(V2, torn), (LEGACY, &legacy)]), Some(Trust::Trusted));
}

/// Quoting an id changes nothing (D08), wherever and however it is quoted.
#[test]
fn nothing_is_laundered() {
    let pending = archive(&[("m", "pending")]);
    let comment = "<!-- source-id:p/t/m -->";
    for (path, text) in [
        ("sources/zzz.md", format!("x {comment} y\n")),
        ("sources/zzz.md", format!("{comment}\n[] user: x\n")),
        ("sources/D1.md", format!("<a id=\"d1-1\"></a>\n[] A: {comment}\n{comment} [D1:1]\n")),
        (LEGACY, format!("{}[] user: {comment}\n", message("p/t/other"))),
        (LEGACY, message("p/t/m")),
        ("topics/a.md", message("p/t/m")),
    ] {
        assert_eq!(trust("p/t/m", &[(V2, &pending), (path, &text)]), Some(Trust::Pending), "{path} {text}");
        let without = trust("p/t/m", &[(path, &text)]);
        assert_eq!(without, (path == LEGACY && text == message("p/t/m")).then_some(Trust::Trusted), "{path} {text}");
    }
}

#[test]
fn numbered_turns() {
    let turns = "# D1\n\n<a id=\"d1-1\"></a>\n[] A: see [D9:9], <a id=\"d1-8\"></a> [D1:1]\n\n<a id=\"d1-2\"></a>\n";
    for path in ["sources/D1.md", "sources/x/D1.md"] {
        assert_eq!(trust("D1:1", &[(path, turns)]), Some(Trust::Trusted));
        // An anchor names its turn, if only that.
        assert_eq!(trust("D1:2", &[(path, turns)]), Some(Trust::Trusted));
        // What is mentioned or quoted is not named.
        assert_eq!(trust("D9:9", &[(path, turns)]), None);
        assert_eq!(trust("D1:8", &[(path, turns)]), None);
    }
    for path in ["sources/D2.md", "sources/notes.md", "topics/D1.md", "sources/p/_v2/D1.md"] {
        assert_eq!(trust("D1:1", &[(path, turns)]), None, "{path}");
    }
}

#[test]
fn all_or_nothing() {
    let files = [(V2, archive(&[("a", "trusted"), ("b", "pending"), ("c", "trusted")])), (LEGACY, message("p/t/old"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    assert_eq!(resolve(&["p/t/a", "p/t/c", "p/t/old"], &files).all_trusted(), Ok(()));
    assert_eq!(resolve(&[], &files).all_trusted(), Ok(()));
    let text = |text: &[&str]| text.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        resolve(&["p/t/a", "p/t/b", "p/t/zzz", "D1:1", "nonsense", "lex_0"], &files).all_trusted(),
        Err(Unresolved { pending: text(&["p/t/b"]), missing: text(&["D1:1", "lex_0", "nonsense", "p/t/zzz"]) })
    );
}

/// Only files that can hold a reference have to be read.
#[test]
fn what_has_to_be_read() {
    let resolution = Resolution::of(["p/t/m", "a b/c/d", "D3:7"]);
    for path in [V2, LEGACY, "sources/a%20b/_v2/c.md", "sources/a%20b/c.md", "sources/D3.md", "sources/x/y/D3.md"] {
        assert!(resolution.wants(path), "{path}");
    }
    for path in ["sources/p/_v2/u.md", "sources/D4.md", "topics/D3.md", "sources/x/_v2/D3.md", "core.md", ""] {
        assert!(!resolution.wants(path), "{path}");
    }
}

#[test]
fn newer_records_take_the_place_of_older_ones() {
    let files = [
        (V2, archive(&[("m", "pending")])),
        ("sources/q/_v2/t.md", "<!-- openprogram-source-archive:v2 -->\n\n".to_owned()),
        (LEGACY, message("p/t/m") + &message("p/t/n") + "D1:1 is mentioned\n"),
        ("sources/D1.md", "<a id=\"d1-1\"></a>\n[] A: x [D1:1]\n".to_owned()),
    ];
    let paths = files.iter().map(|(path, _)| *path);
    let mut newer = NewerIds::among(paths);
    let mut left = Vec::new();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    read(&files, |path, record| {
        newer.see(path, record);
        if let RecordRef::Legacy(legacy) = record
            && !newer.supersedes(legacy)
            && legacy.kind != LegacyKind::Mention
        {
            left.push(legacy.id.to_owned());
        }
    });
    assert_eq!(left, ["p/t/n", "D1:1"]);
}

//! What a run that writes nothing says is what the same run does: repeated ids, within a file and over several, names that
//! differ only in letter case, and what stands in the way.

mod import_support;

use import_support::{options, take_files};
use recollex_core::import::Format;
use recollex_core::source::{
    Batch, Existing, ExistingScan, LimitReached, Limits, Obstacle, Occupant, Outcome, Plan, Preview,
};
use std::collections::BTreeMap;

/// A workspace in memory.
#[derive(Clone, Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn plan(&self, batch: &Batch) -> Plan {
        let limits = Limits::default();
        let mut existing: BTreeMap<String, Existing> = BTreeMap::new();
        for path in batch.paths() {
            if let Some(text) = self.0.get(path) {
                let mut scan = ExistingScan::new(batch, path, &limits);
                scan.push_text(text);
                existing.insert(path.to_owned(), scan.finish());
            }
        }
        let mut comparison = batch.compare(existing).expect("sound archives");
        while let Some(range) = comparison.wanted() {
            let (start, end) = (range.offset as usize, (range.offset + range.length) as usize);
            let piece = self.0[&range.path].as_bytes()[start..end].to_vec();
            comparison.supply(&piece);
        }
        comparison.plan().expect("nothing is missing")
    }

    fn write(&mut self, plan: &Plan) {
        for change in &plan.changes {
            self.0.entry(change.path.clone()).or_default().push_str(&change.text);
        }
    }
}

fn outcomes(plan: &Plan) -> Vec<(String, Outcome)> {
    plan.records.iter().map(|kept| (kept.id.to_string(), kept.outcome)).collect()
}

fn batches(files: &[(&str, String)]) -> Vec<Batch> {
    let limits = Limits::default();
    let files: Vec<_> = files.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into_bytes())).collect();
    let mut taken = take_files(options(Format::ChatGpt), &limits, &files, 64);
    assert!(taken.iter().all(|one| one.problem.is_none()), "{taken:?}");
    let all = taken.iter_mut().flat_map(|one| one.batches(&limits));
    all.map(|records| Batch::check(records, &limits).expect("good records")).collect()
}

/// A conversation of messages `id=text`.
fn conversation(id: &str, messages: &str) -> String {
    let nodes: Vec<String> = messages
        .split(' ')
        .map(|one| {
            let (message, text) = one.split_once('=').expect("id=text");
            format!(
                r#""{message}":{{"message":{{"author":{{"role":"user"}},"content":{{"content_type":"text","parts":["{text}"]}}}}}}"#
            )
        })
        .collect();
    format!(r#"{{"id":"{id}","mapping":{{{}}}}}"#, nodes.join(","))
}

#[test]
fn a_preview_and_a_run_say_the_same() {
    let cases: Vec<Vec<(&str, String)>> = vec![
        // Twice in one file: the same, grown, edited.
        vec![(
            "f",
            format!(
                "[{},{},{},{}]",
                conversation("dup", "m1=a m2=b"),
                conversation("dup", "m1=a m2=b"),
                conversation("dup", "m1=other m3=c"),
                conversation("else", "m1=a"),
            ),
        )],
        // Over several files.
        vec![
            ("a", format!("[{}]", conversation("t", "m1=a"))),
            ("b", format!("[{}]", conversation("t", "m1=b m2=b"))),
            ("c", format!("[{}]", conversation("t", "m1=a m2=c m3=c"))),
        ],
    ];
    for files in cases {
        let start = [Files::default(), {
            // Some of it is there already, with other content.
            let mut there = Files::default();
            let known = batches(&[("x", format!("[{}]", conversation("t", "m2=z")))]);
            let plan = there.plan(&known[0]);
            there.write(&plan);
            there
        }];
        for there in start {
            let (mut done, mut preview) = (there.clone(), Preview::new(100));
            there.0.keys().for_each(|path| preview.lies(path, Occupant::File));
            for batch in batches(&files) {
                let real = done.plan(&batch);
                let mut tried = there.plan(&batch);
                for change in &tried.changes {
                    preview.check(&change.path).expect("nothing is in the way");
                }
                preview.carry_out(&mut tried).expect("room for all");
                assert_eq!(outcomes(&tried), outcomes(&real), "{files:?}");
                done.write(&real);
            }
        }
    }
}

#[test]
fn names_that_differ_in_letter_case_and_what_lies_in_the_way() {
    let mut preview = Preview::new(100);
    preview.lies("sources/P/_v2/other.md", Occupant::File);
    preview.lies("sources/file", Occupant::File);
    preview.lies("sources/link", Occupant::Link);
    preview.lies("sources/q/_v2/pipe.md", Occupant::Other);
    // A sign that folds to a letter of ASCII.
    preview.lies("sources/r/_v2/\u{212a}.md", Occupant::File);
    let collision = |planned: &str, existing: &str| {
        Err(Obstacle::Collision { planned: planned.to_owned(), existing: existing.to_owned() })
    };
    assert_eq!(preview.check("sources/P/_v2/other.md"), Ok(()));
    assert_eq!(preview.check("sources/P/_v2/new.md"), Ok(()));
    assert_eq!(preview.check("sources/p/_v2/new.md"), collision("sources/p", "sources/P"));
    assert_eq!(preview.check("sources/P/_v2/Other.md"), collision("sources/P/_v2/Other.md", "sources/P/_v2/other.md"));
    assert_eq!(preview.check("sources/r/_v2/k.md"), collision("sources/r/_v2/k.md", "sources/r/_v2/\u{212a}.md"));
    assert_eq!(preview.check("sources/file/_v2/t.md"), Err(Obstacle::WrongKind("sources/file".into())));
    assert_eq!(preview.check("sources/P/_v2"), Err(Obstacle::WrongKind("sources/P/_v2".into())));
    assert_eq!(preview.check("sources/link/_v2/t.md"), Err(Obstacle::Denied("sources/link".into())));
    assert_eq!(preview.check("sources/q/_v2/pipe.md"), Err(Obstacle::Denied("sources/q/_v2/pipe.md".into())));

    // What the run itself would have made counts as well.
    let both = batches(&[("f", format!("[{},{}]", conversation("Boat", "m=a"), conversation("boat", "m=a")))]);
    let mut plans: Vec<Plan> = both.iter().map(|batch| Files::default().plan(batch)).collect();
    preview.carry_out(&mut plans[0]).unwrap();
    let path = &plans[1].changes[0].path;
    assert_eq!(preview.check(path), collision(path, "sources/chatgpt/_v2/Boat.md"));
}

#[test]
fn what_it_remembers_is_bounded_and_the_limit_named() {
    let mut preview = Preview::new(2);
    let all = batches(&[(
        "f",
        format!("[{},{},{}]", conversation("t", "a=1 b=2"), conversation("t", "b=2"), conversation("u", "c=3")),
    )]);
    let mut plans: Vec<Plan> = all.iter().map(|batch| Files::default().plan(batch)).collect();
    preview.carry_out(&mut plans[0]).unwrap();
    // Nothing new takes no room.
    preview.carry_out(&mut plans[1]).unwrap();
    assert_eq!(plans[1].records[0].outcome, Outcome::Already);
    let error = preview.carry_out(&mut plans[2]).unwrap_err();
    assert_eq!(error, LimitReached { name: Preview::RECORDS, allowed: 2, asked: 3, subject: None });
    assert_eq!(plans[2].records[0].outcome, Outcome::Archived, "nothing of it counts");
    assert_eq!(preview.check("sources/chatgpt/_v2/U.md"), Ok(()));
}

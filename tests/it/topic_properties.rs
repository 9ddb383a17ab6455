//! Edits of every kind, one after the other, against a simple model; and after each of them the views against those of the
//! model, and against those that somebody makes who knows nothing yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use recollex::Error;
use recollex::types::Error::Conflict;
use recollex::workspace::{UpdateOptions, Updated};
use serde_json::{Value, json};

use crate::crash::Random;
use crate::ground::{Claim, Ground, RECORD, claims, whole};

const TOPICS: [&str; 6] =
    ["topics/a.md", "topics/b c.md", "topics/core.md", "topics/d/e.md", "topics/d/100%.md", "topics/茶.md"];
const TIMES: [&str; 6] = ["2026-01-02", "2026-01-03", "2026-02", "2025", "undated", "2024-02-29"];

/// How many edits a history has. The longer it is, the longer is each step of it.
const STEPS: usize = 45;

/// What topics say, by their paths, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model(BTreeMap<String, Vec<Claim>>);

impl Model {
    fn of(ground: &Ground) -> Self {
        let paths = ground.kept().into_iter().map(|(path, ..)| path.to_str().unwrap().to_owned());
        let topics = paths.filter(|path| path.starts_with("topics/") && path.ends_with(".md"));
        Self(topics.map(|path| (path.clone(), claims(&ground.read(&path)))).collect())
    }

    fn all(&self) -> impl Iterator<Item = (&str, &Claim)> {
        self.0.iter().flat_map(|(path, claims)| claims.iter().map(move |claim| (path.as_str(), claim)))
    }

    fn len(&self) -> usize {
        self.all().count()
    }

    fn place(&self, id: &str) -> (String, usize) {
        let mut topics = self.0.iter();
        let place = |claims: &[Claim]| claims.iter().position(|claim| claim.id == id);
        topics.find_map(|(path, claims)| Some((path.clone(), place(claims)?))).unwrap()
    }

    fn claim(&mut self, id: &str) -> &mut Claim {
        self.0.values_mut().flatten().find(|claim| claim.id == id).unwrap()
    }

    fn put(&mut self, path: &str, at_start: bool, claim: Claim) {
        let claims = self.0.entry(path.to_owned()).or_default();
        claims.insert(if at_start { 0 } else { claims.len() }, claim);
    }

    fn take(&mut self, id: &str) -> Claim {
        let (path, at) = self.place(id);
        let claims = self.0.get_mut(&path).unwrap();
        let claim = claims.remove(at);
        if claims.is_empty() {
            self.0.remove(&path);
        }
        claim
    }

    /// Whether another block than these links to one of them.
    fn is_linked(&self, ids: &[&str]) -> bool {
        self.all().any(|(_, claim)| !ids.contains(&&*claim.id) && claim.links().any(|link| ids.contains(&link)))
    }
}

/// Random edits of one workspace.
struct Walk {
    ground: Ground,
    model: Model,
    random: Random,
    made: usize,
    counts: BTreeMap<&'static str, usize>,
}

impl Walk {
    fn any<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.random.below(of.len())]
    }

    fn any_claim(&mut self) -> Option<Claim> {
        let all: Vec<Claim> = self.model.all().map(|(_, claim)| claim.clone()).collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len())].clone())
    }

    /// What no claim has said yet, sometimes with a link to one that there is.
    fn text(&mut self) -> String {
        self.made += 1;
        let number = self.made;
        match (self.random.below(3), self.any_claim()) {
            (0, Some(to)) => format!("Claim {number}, see [this](#^{}).", to.id),
            _ => format!("Claim {number}."),
        }
    }

    /// The content of a request for a text of the model: links have some path or other.
    fn content(text: &str) -> String {
        text.replace("](#^", "](wherever.md#^")
    }

    fn time(&mut self) -> String {
        (*self.any(&TIMES)).to_owned()
    }

    fn record(op: &str, content: &str, time: &str) -> Value {
        let time = if time == "undated" { Value::Null } else { time.into() };
        json!({"op": op, "content": Self::content(content), "time": time, "source_refs": [RECORD]})
    }

    fn made(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    /// Asks for what the model says is possible, and is given it.
    fn asks(&mut self, kind: &'static str, edit: &Value) -> Updated {
        self.made(kind);
        self.ground.update(edit).unwrap_or_else(|error| panic!("{kind} {edit}: {error} {:?}", error.problems()))
    }

    /// Asks for what the model says is not.
    fn asks_in_vain(&mut self, kind: &'static str, edit: &Value, reason: &str) {
        self.made(kind);
        let reasons = self.ground.refused(edit);
        assert!(reasons.iter().any(|found| found == reason), "{kind} {edit}: {reasons:?}");
    }

    fn create(&mut self) {
        let (topic, text, time) = (*self.any(&TOPICS), self.text(), self.time());
        let at_start = self.random.below(3) == 0;
        let mut record = Self::record("create_record", &text, &time);
        record["destination"] =
            json!({"topic_path": topic, "headings": ["Notes"], "position": if at_start { "start" } else { "end" }});
        let updated = self.asks("create", &json!({"memory_changes": [record]}));
        let [given] = &updated.block_ids[..] else { panic!("{:?}", updated.block_ids) };
        self.model.put(topic, at_start, Claim { id: given.id.clone(), text, times: vec![time] });
    }

    fn update(&mut self, id: &str) {
        let (text, time) = (self.text(), self.time());
        let mut record = Self::record("update_record", &text, &time);
        record["memory_id"] = id.into();
        self.asks("update", &json!({"memory_changes": [record]}));
        let claim = self.model.claim(id);
        (claim.text, claim.times) = (text, vec![time]);
    }

    fn delete(&mut self, id: &str) {
        let edit = json!({"memory_changes": [{"op": "delete_record", "memory_id": id}]});
        if self.model.is_linked(&[id]) {
            self.asks_in_vain("delete a linked one", &edit, "dangling-block-link");
        } else {
            self.asks("delete", &edit);
            self.model.take(id);
        }
    }

    fn relocate(&mut self, id: &str) {
        let topic = *self.any(&TOPICS);
        let at_start = self.random.below(2) == 0;
        let destination =
            json!({"topic_path": topic, "headings": ["Notes"], "position": if at_start { "start" } else { "end" }});
        self.asks(
            "move",
            &json!({"memory_changes": [{"op": "move_records", "memory_ids": [id], "destination": destination}]}),
        );
        let claim = self.model.take(id);
        self.model.put(topic, at_start, claim);
    }

    /// The topic of a claim with other words for it, and its number of the line.
    fn reworded(&mut self, id: &str) -> (String, String, usize, String) {
        let (path, _) = self.model.place(id);
        self.made += 1;
        let (old, new) = (self.model.claim(id).text.clone(), format!("Claim {} in other words.", self.made));
        let topic = self.ground.read(&path);
        let line = topic.lines().position(|line| line.ends_with(&format!(" ^{id}"))).unwrap();
        let text = topic.lines().nth(line).unwrap();
        let rest = &text[text.find("[^").unwrap()..];
        let reworded = format!("{new}{rest}");
        assert!(topic.contains(&old) || old.contains("](#^"), "{topic}");
        self.model.claim(id).text = new;
        (path, topic.replace(text, &reworded), line, reworded)
    }

    /// The topic as a whole: one claim says something else, another comes.
    fn rewrite(&mut self, id: &str) {
        let (path, mut content, ..) = self.reworded(id);
        let (text, time) = (self.text(), self.time());
        content.push('\n');
        content.push_str(&crate::ground::written(&Self::content(&text), &time, "e1"));
        let updated = self.asks("write", &json!({"changes": [whole(&path, &content)]}));
        let [given] = &updated.block_ids[..] else { panic!("{:?}", updated.block_ids) };
        self.model.put(&path, false, Claim { id: given.id.clone(), text, times: vec![time] });
    }

    fn patch(&mut self, id: &str) {
        let (path, _, line, reworded) = self.reworded(id);
        let old = self.ground.read(&path).lines().nth(line).unwrap().to_owned();
        let number = line + 1;
        let name = |side: &str| format!("{side}/{path}");
        let patch =
            format!("--- {}\n+++ {}\n@@ -{number},1 +{number},1 @@\n-{old}\n+{reworded}\n", name("a"), name("b"));
        self.asks("patch", &json!({"patch": patch}));
    }

    fn drop_topic(&mut self, id: &str) {
        let (path, _) = self.model.place(id);
        let ids: Vec<String> = self.model.0[&path].iter().map(|claim| claim.id.clone()).collect();
        let names: Vec<&str> = ids.iter().map(String::as_str).collect();
        let changes = json!([{"path": path, "action": "delete"}]);
        self.asks_in_vain("delete a topic unnamed", &json!({"changes": changes}), "block-id-removed");
        let edit = json!({"changes": changes, "removed_blocks": ids});
        if self.model.is_linked(&names) {
            self.asks_in_vain("delete a linked topic", &edit, "dangling-block-link");
        } else {
            self.asks("delete a topic", &edit);
            self.model.0.remove(&path);
        }
    }

    /// Somebody with an editor changes words, and the next command is about something else.
    fn by_hand_between(&mut self, id: &str) {
        let (path, content, ..) = self.reworded(id);
        self.ground.write(&path, content);
        self.made("by hand, and something else");
        self.create();
    }

    /// Somebody with an editor adds a claim, without an id and with a label of their own.
    fn by_hand(&mut self) {
        let path = *self.any(&TOPICS);
        let (text, time) = (self.text(), self.time());
        let old = if self.model.0.contains_key(path) { self.ground.read(path) } else { "# Notes\n".to_owned() };
        let written = crate::ground::written(&Self::content(&text), &time, "e1");
        // With an editor that writes CRLF.
        let content = format!("{old}\n{written}").replace('\n', "\r\n");
        self.ground.write(path, content);
        self.made("by hand");
        let repaired = self.ground.session.repair(false).unwrap();
        let [given] = &repaired.block_ids[..] else { panic!("{:?}", repaired.block_ids) };
        self.model.put(path, false, Claim { id: given.id.clone(), text, times: vec![time] });
    }

    fn stale(&mut self) {
        let before = self.ground.kept();
        let fresh = self.ground.revision();
        let record = json!({"op": "delete_record", "memory_id": "none"});
        let request = json!({"base_revision": format!("r1-{}", "0".repeat(32)), "memory_changes": [record]});
        let options = UpdateOptions { provenance: None, dry_run: false };
        match self.ground.session.update(&request.to_string(), &options) {
            Err(Error::Memory(Conflict(told))) => assert_eq!(told, fresh),
            other => panic!("{other:?}"),
        }
        assert!(self.ground.kept() == before);
        self.made("stale");
    }

    fn step(&mut self) {
        let id = self.any_claim().map(|claim| claim.id);
        match (self.random.below(20), id) {
            (0..=4, _) | (_, None) => self.create(),
            (5..=6, _) => self.by_hand(),
            (7, _) => self.stale(),
            (8..=9, Some(id)) => self.update(&id),
            (10..=12, Some(id)) => self.delete(&id),
            (13..=14, Some(id)) => self.relocate(&id),
            (15, Some(id)) => self.rewrite(&id),
            (16..=17, Some(id)) => self.patch(&id),
            (18, Some(id)) => self.by_hand_between(&id),
            (_, Some(id)) => self.drop_topic(&id),
        }
    }

    /// Topics say what the model says, views what it makes of them, and somebody who knows nothing makes the same.
    fn check(&mut self, what: &str) {
        let found = Model::of(&self.ground);
        for (path, claims) in &self.model.0 {
            let text = || self.ground.read(path);
            assert_eq!(found.0.get(path), Some(claims), "{what}: {path} is {}", text());
        }
        assert_eq!(found, self.model, "{what}");
        self.check_relations(what);
        self.check_timeline(what);
        self.check_core(what);
        let recent = self.ground.read("recent_events.jsonl");
        assert_eq!(recent.lines().count(), self.model.len().min(50), "{what}");
        for line in recent.lines() {
            let unit: Value = serde_json::from_str(line).unwrap();
            let (path, claim) = self.model.all().find(|(_, claim)| unit["memory_id"] == *claim.id).expect(what);
            assert_eq!(unit["topic_path"].as_str(), Some(path), "{what}: {unit}");
            assert_eq!(
                claims(&format!("{}[^x] ^x\n[^x]: Time: `x`", unit["content"].as_str().unwrap()))[0].text,
                claim.text
            );
        }
        self.ground.assert_views_are_whole(what);
    }

    /// All of it has room in this view, and nobody's words but those of its topic.
    fn check_core(&self, what: &str) {
        let topic = self.model.0.get("topics/core.md");
        assert_eq!(self.ground.root().join("core.md").exists(), topic.is_some(), "{what}");
        if let Some(topic) = topic {
            assert_eq!(claims(&self.ground.read("core.md")), *topic, "{what}");
        }
    }

    fn check_relations(&self, what: &str) {
        let mut outbound = BTreeMap::new();
        let mut backlinks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, claim) in self.model.all() {
            outbound.insert(&claim.id, claim.links().collect::<BTreeSet<_>>());
            for to in claim.links() {
                backlinks.entry(to).or_default().insert(&claim.id);
            }
        }
        outbound.retain(|_, links| !links.is_empty());
        let found: Value = serde_json::from_str(&self.ground.read("relations.json")).unwrap();
        let mut found = found;
        if let Some(outbound) = found["outbound"].as_object_mut() {
            outbound.retain(|_, links| links.as_array().is_none_or(|links| !links.is_empty()));
        }
        assert_eq!(found, json!({"backlinks": backlinks, "outbound": outbound}), "{what}");
    }

    fn check_timeline(&self, what: &str) {
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (_, claim) in self.model.all() {
            for time in claim.times.iter().filter(|time| *time != "undated") {
                let path = format!("timeline/{}.md", time.replace('-', "/"));
                expected.entry(path).or_default().insert(claim.id.clone());
            }
        }
        let paths = self.ground.kept().into_iter().map(|(path, ..)| path.to_str().unwrap().to_owned());
        let ids = |text: String| -> BTreeSet<String> {
            let rows = text.split("[Topic](").skip(1).map(|row| row.split(')').next().unwrap().to_owned());
            rows.map(|target| target.split_once("#^").unwrap().1.to_owned()).collect()
        };
        let files = paths.filter(|path| path.starts_with("timeline/") && path.ends_with(".md"));
        let found: BTreeMap<_, _> = files.map(|path| (path.clone(), ids(self.ground.read(&path)))).collect();
        assert_eq!(found, expected, "{what}");
    }
}

fn walk(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut walk =
        Walk { ground: Ground::new(), model: Model::default(), random: Random(seed), made: 0, counts: BTreeMap::new() };
    walk.create();
    for step in 0..STEPS {
        if step % 10 == 9 {
            // It may be deleted at any time.
            fs::remove_dir_all(walk.ground.root().join(".scriptorium-recollex")).unwrap();
        }
        walk.step();
        walk.check(&format!("seed {seed}, step {step}"));
    }
    walk.counts
}

#[test]
fn whatever_is_edited_topics_and_views_are_those_of_the_model() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    std::thread::scope(|scope| {
        let walks: Vec<_> = (1..=3).map(|seed| scope.spawn(move || walk(seed))).collect();
        for walk in walks {
            for (kind, count) in walk.join().unwrap() {
                *counts.entry(kind).or_default() += count;
            }
        }
    });
    // Every kind of edit was made.
    assert_eq!(counts.len(), 13, "{counts:?}");
}

//! A workspace in memory that updates are made in, one after the other.

#![allow(dead_code, reason = "each test program uses a part of it")]

use recollex_core::ids::{SourceId, SourceRef, TopicPath};
use recollex_core::source::{self, Batch, ExistingScan, Tier};
use recollex_core::topic::edit::{Evidence, Kept, Snapshot};
use recollex_core::topic::{Check, Sources, TopicRef, Tree};
use recollex_core::update::{
    Caller, DEFAULT_PROVIDER, Draft, Limits, Plan, Proposal, Provenance, Rejection, Request, Workspace,
};
use std::collections::BTreeMap;

/// Records and turns: what they are called, where they are, whether they are trusted.
#[derive(Clone, Debug)]
pub struct Archive {
    kept: BTreeMap<String, (String, bool)>,
    pub files: BTreeMap<String, String>,
}

impl Archive {
    fn new() -> Self {
        let record = |id: &str, trusted| (id.to_owned(), ("sources/p/_v2/t.md".to_owned(), trusted));
        let turn = |id: &str| (id.to_owned(), ("sources/D1.md".to_owned(), true));
        let kept =
            [record("p/t/m1", true), record("p/t/(2)", true), record("p/t/pending", false), turn("D1:1"), turn("D1:2")];
        Self { kept: kept.into(), files: BTreeMap::new() }
    }

    fn look(&self, batch: &Batch) -> source::Plan {
        let limits = source::Limits::default();
        let scan = |path: &str| {
            let mut scan = ExistingScan::new(batch, path, &limits);
            scan.push_text(self.files.get(path)?);
            Some((path.to_owned(), scan.finish()))
        };
        let existing = batch.paths().into_iter().filter_map(scan).collect();
        let mut comparison = batch.compare(existing).expect("sound archives");
        while let Some(range) = comparison.wanted().cloned() {
            let from = range.offset as usize;
            comparison.supply(&self.files[&range.path].as_bytes()[from..from + range.length as usize]);
        }
        comparison.plan().expect("everything is known")
    }

    fn take(&mut self, plan: &source::Plan) {
        for change in &plan.changes {
            let file = self.files.entry(change.path.clone()).or_default();
            assert_eq!(file.len() as u64, change.from.bytes);
            file.push_str(&change.text);
        }
        for record in &plan.records {
            self.kept.insert(record.id.to_string(), (record.path.clone(), true));
        }
    }
}

impl Sources for Archive {
    fn record_at(&self, path: &str, anchor: &str) -> Option<SourceId> {
        let here = self.kept.iter().filter(|(_, (file, _))| file == path);
        here.filter_map(|(id, _)| SourceId::parse(id).ok()).find(|id| id.anchor() == anchor)
    }
}

impl Evidence for Archive {
    fn look_up(&self, evidence: &SourceRef) -> Option<Kept> {
        let (path, trusted) = self.kept.get(evidence.as_str())?;
        Some(Kept { path: path.clone(), trusted: *trusted })
    }
}

/// Topics and archives.
#[derive(Clone, Debug)]
pub struct Memory {
    pub topics: BTreeMap<String, String>,
    pub unreadable: Vec<String>,
    pub archive: Archive,
}

pub const REVISION: &str = "r1-now";

impl Memory {
    pub fn new(topics: &[(&str, &str)]) -> Self {
        let topics = topics.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Self { topics, unreadable: Vec::new(), archive: Archive::new() }
    }

    pub fn owner() -> Caller {
        Caller { tier: Some(Tier::Owner), provenance: Some(provenance("owner")), offered: None }
    }

    pub fn paired() -> Caller {
        Caller { tier: Some(Tier::Paired), provenance: Some(provenance("paired")), offered: None }
    }

    pub fn plan(&self, request: Request, caller: Caller) -> Result<Plan, Rejection> {
        let draft = Draft::new(request, caller, DEFAULT_PROVIDER, &source::Limits::default())?;
        draft.check_revision(&[REVISION, "flat"])?;
        let parsed = |path: &str| TopicPath::parse(path).expect("a topic");
        let topics = self.topics.iter().map(|(path, text)| (parsed(path), text.as_str()));
        let committed = Snapshot::new(topics).with_unreadable(self.unreadable.iter().map(|path| parsed(path)));
        let archive = self.archive.look(draft.batch());
        let workspace = Workspace { revisions: &[REVISION, "flat"], committed: &committed, evidence: &self.archive };
        draft.plan(workspace, archive)
    }

    pub fn commit(&mut self, plan: &Plan) {
        for (path, text) in plan.topics() {
            self.unreadable.retain(|unreadable| unreadable != path.as_str());
            match text {
                Some(text) => drop(self.topics.insert(path.to_string(), text.clone())),
                None => drop(self.topics.remove(path.as_str())),
            }
        }
        self.archive.take(plan.archive());
    }

    pub fn update(&mut self, request: Request, caller: Caller) -> Result<Plan, Rejection> {
        let plan = self.plan(request, caller)?;
        self.commit(&plan);
        Ok(plan)
    }

    /// The fields of a request, the revision left out.
    pub fn ask(&mut self, fields: &str) -> Result<Plan, Rejection> {
        self.ask_as(Self::owner(), fields)
    }

    pub fn ask_as(&mut self, caller: Caller, fields: &str) -> Result<Plan, Rejection> {
        let request = Request::from_json(&with_revision(fields), &Limits::default()).map_err(Rejection::Refused)?;
        self.update(request, caller)
    }

    /// Every block by its ids: topic, headings, ids, what it says.
    pub fn blocks(&self) -> Vec<(String, Vec<String>, Vec<String>, String)> {
        let check = |(path, text): (&String, &'_ String)| {
            let path = TopicPath::parse(path).expect("a topic");
            Check::new(path, TopicRef::parse(text), &self.archive)
                .blocks()
                .map(|block| {
                    let ids = block.ids().iter().map(|id| id.as_str().to_owned()).collect();
                    let headings = block.headings().into_iter().map(str::to_owned).collect();
                    (block.topic().path().to_string(), headings, ids, block.content())
                })
                .collect::<Vec<_>>()
        };
        self.topics.iter().flat_map(check).collect()
    }

    /// Every fault of every topic.
    pub fn faults(&self) -> Vec<String> {
        let check = |(path, text): (&String, &'static str)| {
            Check::new(TopicPath::parse(path).expect("a topic"), TopicRef::parse(text), &self.archive)
        };
        let texts: Vec<(&String, &'static str)> =
            self.topics.iter().map(|(path, text)| (path, &*Box::leak(text.clone().into_boxed_str()))).collect();
        let tree = Tree::new(texts.into_iter().map(check).collect());
        tree.faults().map(|(topic, fault)| format!("{}:{} {}", topic.path(), fault.line, fault.code.as_str())).collect()
    }
}

pub fn provenance(tier: &str) -> Provenance {
    Provenance {
        principal_id: "owner/install/1".to_owned(),
        speaker_kind: "human".to_owned(),
        speaker_id: "ada".to_owned(),
        speaker_display: "Ada".to_owned(),
        authority_tier: tier.to_owned(),
        origin_id: "s/t".to_owned(),
    }
}

pub fn with_revision(fields: &str) -> String {
    format!("{{\"base_revision\": \"{REVISION}\", {}}}", fields.trim().trim_start_matches('{').trim_end_matches('}'))
}

pub fn request(proposal: Proposal) -> Request {
    Request::new(proposal, &Limits::default()).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// Reasons with their places: `path:line field reason subject`.
pub fn told(rejection: &Rejection) -> Vec<String> {
    let fault = |fault: &recollex_core::update::Fault| {
        let mut words = Vec::new();
        if let Some(path) = &fault.path {
            words.push(fault.line.map_or_else(|| path.clone(), |line| format!("{path}:{line}")));
        }
        words.extend(fault.field.clone());
        words.push(fault.why.as_str().to_owned());
        words.extend(fault.subject.clone());
        words.join(" ")
    };
    match rejection {
        Rejection::Stale { base, revision } => vec![format!("stale {base} {revision}")],
        Rejection::Refused(faults) => faults.iter().map(fault).collect(),
    }
}

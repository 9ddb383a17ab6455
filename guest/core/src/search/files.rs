//! Files of an index, and which runs each is made of.

use super::part::{Part, Version};
use std::collections::{BTreeMap, BTreeSet};

/// A run: the part, and the run in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunAt {
    pub(super) part: u32,
    pub(super) run: u32,
}

/// A file of which something is known.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) path: String,
    /// Ascending by the ordinals of their documents, and nothing is missing between them.
    pub(super) runs: Vec<RunAt>,
    /// How many documents they have.
    pub(super) documents: u32,
    /// Up to which it was indexed; none if nobody said.
    pub(super) version: Option<Version>,
    /// The survey that met it last.
    seen: u32,
}

impl File {
    /// Puts the runs in order, and finds out what they come to. Nothing is known of the file if they do not fit together.
    fn settle(&mut self, parts: &[Part]) {
        let run = |at: &RunAt| parts.get(at.part as usize).and_then(|part| part.runs().get(at.run as usize));
        // A run without documents says which version has no more of them.
        self.runs.sort_by_key(|at| run(at).map(|run| (run.ordinal, run.documents)));
        self.documents = 0;
        for run in self.runs.iter().filter_map(run) {
            if run.ordinal != self.documents {
                *self = File { path: core::mem::take(&mut self.path), ..File::default() };
                return;
            }
            self.documents += run.documents;
            self.version.clone_from(&run.version);
        }
    }
}

/// All files, by number. A file that is gone keeps its number and has no runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: Vec<File>,
    numbers: BTreeMap<String, u32>,
    survey: u32,
}

impl Files {
    /// Of all runs of these parts but the dead ones. Where a file's runs do not fit together, nothing is known of it.
    /// What a survey has met counts on.
    pub(super) fn of(parts: &[Part], dead: &BTreeSet<RunAt>, before: &Files) -> Files {
        let mut all: Vec<(&str, RunAt)> = Vec::new();
        for (part, part_number) in parts.iter().zip(0_u32..) {
            for (run, run_number) in part.runs().iter().zip(0_u32..) {
                let at = RunAt { part: part_number, run: run_number };
                let path = part.files().get(run.file as usize).filter(|_| !dead.contains(&at));
                all.extend(path.map(|path| (path.as_str(), at)));
            }
        }
        // Each part has most of them in order: that makes this, and the map of what is in order, far cheaper than looking each
        // path up.
        all.sort();
        let of_file = |runs: &[(&str, RunAt)]| {
            let path = runs.first().map(|(path, _)| (*path).to_owned()).unwrap_or_default();
            let mut file = File { path, runs: runs.iter().map(|(_, at)| *at).collect(), ..File::default() };
            file.settle(parts);
            let known = before.find(&file.path).and_then(|number| before.get(number));
            file.seen = known.map_or(0, |known| known.seen);
            file
        };
        let files: Vec<File> = all.chunk_by(|(left, _), (right, _)| left == right).map(of_file).collect();
        let numbers = files.iter().zip(0..).map(|(file, number)| (file.path.clone(), number)).collect();
        Files { files, numbers, survey: before.survey }
    }

    /// Begins to go through all files that there are.
    pub(super) fn begin_survey(&mut self) {
        self.survey = self.survey.wrapping_add(1);
    }

    /// A file was met.
    pub(super) fn see(&mut self, number: u32) {
        let survey = self.survey;
        if let Some(file) = self.get_mut(number) {
            file.seen = survey;
        }
    }

    /// Files that have something and were not met.
    pub(super) fn unseen(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.seen != self.survey && !file.runs.is_empty())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(super) fn get(&self, number: u32) -> Option<&File> {
        self.files.get(number as usize)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut File> {
        self.files.get_mut(number as usize)
    }

    pub(super) fn find(&self, path: &str) -> Option<u32> {
        self.numbers.get(path).copied()
    }

    /// The number of a file, a new one if it has none yet.
    pub(super) fn number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        // At most one file a run, and runs are bounded by documents.
        let number = self.files.len() as u32;
        self.numbers.insert(path.to_owned(), number);
        self.files.push(File { path: path.to_owned(), ..File::default() });
        number
    }

    /// Takes a file's runs away.
    pub(super) fn clear(&mut self, number: u32) {
        if let Some(file) = self.files.get_mut(number as usize) {
            file.runs.clear();
            file.documents = 0;
            file.version = None;
        }
    }
}

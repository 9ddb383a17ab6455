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
        let runs = parts.iter().zip(0_u32..).flat_map(|(part, number)| {
            part.runs().iter().zip(0_u32..).filter_map(move |(run, run_number)| {
                let at = RunAt { part: number, run: run_number };
                Some((part.files().get(run.file as usize)?.as_str(), at))
            })
        });
        let runs: Vec<(&str, RunAt)> = runs.filter(|(_, at)| !dead.contains(at)).collect();
        // Segments have their files in order: to sort them all takes far fewer comparisons than to look each up.
        let path = |place: &usize| runs.get(*place).map(|(path, _)| *path);
        let mut by_path: Vec<usize> = (0..runs.len()).collect();
        by_path.sort_by_key(path);
        // Files are numbered as they come.
        let mut firsts = vec![0; runs.len()];
        for of_file in by_path.chunk_by(|one, other| path(one) == path(other)) {
            for place in of_file {
                if let (Some(first), Some(found)) = (of_file.first(), firsts.get_mut(*place)) {
                    *found = *first;
                }
            }
        }
        let mut files = Files { survey: before.survey, ..Files::default() };
        let mut numbers = vec![0_u32; runs.len()];
        for (place, ((path, at), first)) in runs.iter().zip(&firsts).enumerate() {
            if place == *first {
                // At most one file a run, and runs are bounded by documents.
                if let Some(number) = numbers.get_mut(place) {
                    *number = files.files.len() as u32;
                }
                files.files.push(File { path: (*path).to_owned(), ..File::default() });
            }
            if let Some(file) = numbers.get(*first).and_then(|number| files.files.get_mut(*number as usize)) {
                file.runs.push(*at);
            }
        }
        let named = by_path.iter().filter(|place| firsts.get(**place) == Some(*place));
        let named = named.filter_map(|place| Some((path(place)?.to_owned(), *numbers.get(*place)?)));
        files.numbers = named.collect();
        for file in &mut files.files {
            file.settle(parts);
            if !before.files.is_empty() {
                let known = before.find(&file.path).and_then(|number| before.get(number));
                file.seen = known.map_or(0, |known| known.seen);
            }
        }
        files
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

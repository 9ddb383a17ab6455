//! Random commits, some of them cut short by a death, against a model that is a map.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::disk::fault;
use super::*;

/// Few names, so that they meet: twins, files and directories of one name, depth.
const NAMES: &[&str] = &[
    "a",
    "A",
    "b",
    "d",
    "d/x",
    "d/X",
    "D/x",
    "d/e/f",
    "d/e/g",
    "d/e",
    "t/\u{e9}",
    "t/e\u{301}",
    "t/\u{c9}/f",
    "z/z/z/z",
];

#[derive(Clone, Debug)]
struct Attempt {
    changes: Vec<Change>,
    /// At which step the process dies, and how much of a write still happens.
    death: Option<(usize, usize)>,
    recover: bool,
}

/// Edits whose numbers are resolved against what is there, give or take one.
fn edit() -> impl Strategy<Value = Edit> {
    let text = prop_oneof![Just(String::new()), "[a-c\u{e9}\u{6c49}\n]{0,6}"];
    prop_oneof![
        text.clone().prop_map(Edit::Put),
        (prop_oneof![9 => Just(0_u64), 1 => Just(1)], text.clone())
            .prop_map(|(length, text)| Edit::Append { length, text }),
        (0..4_u64, 0..3_u64, text).prop_map(|(offset, remove, insert)| Edit::Splice(vec![Splice {
            offset,
            remove,
            insert
        }])),
        Just(Edit::Delete),
        Just(Edit::Keep),
        prop::sample::select(NAMES).prop_map(|to| Edit::MoveTo(to.to_owned())),
    ]
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let change = (prop::sample::select(NAMES), edit()).prop_map(|(path, edit)| change(path, edit));
    let death = prop::option::of((0..60_usize, 0..4_usize));
    (prop::collection::vec(change, 1..4), death, any::<bool>()).prop_map(|(changes, death, recover)| Attempt {
        changes,
        death,
        recover,
    })
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    files: BTreeMap<String, String>,
    directories: BTreeSet<String>,
}

fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

fn key(path: &str) -> String {
    path.split('/').map(path::fold).collect::<Vec<_>>().join("/")
}

impl Model {
    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains(path)
    }

    /// The model after the changes; none if they must be refused.
    fn after(&self, changes: &[Change]) -> Option<Self> {
        let mut next = self.clone();
        let mut named = BTreeSet::new();
        let mut created: BTreeMap<String, (&str, bool)> = BTreeMap::new();
        let mut left = Vec::new();
        for change in changes {
            let path = change.path.as_str();
            let old = self.files.get(path);
            let new: Option<(&str, String)> = match &change.edit {
                Edit::Keep => old.map(|old| (path, old.clone())),
                Edit::Put(text) => Some((path, text.clone())),
                Edit::Append { length, text } => {
                    let old = old.map_or("", String::as_str);
                    if old.len() as u64 != *length {
                        return None;
                    }
                    Some((path, format!("{old}{text}")))
                }
                Edit::Splice(splices) => {
                    let old = old?;
                    let (from, to) = (splices[0].offset as usize, (splices[0].offset + splices[0].remove) as usize);
                    Some((path, format!("{}{}{}", old.get(..from)?, splices[0].insert, old.get(to..)?)))
                }
                Edit::Delete => old.map(|_| None)?,
                Edit::MoveTo(to) => Some((to, old?.clone())),
            };
            let target = new.as_ref().map(|(target, _)| *target);
            for name in [Some(path), target.filter(|target| *target != path || matches!(change.edit, Edit::MoveTo(_)))]
                .into_iter()
                .flatten()
            {
                if !named.insert(name) || self.directories.contains(name) {
                    return None;
                }
                if above(name).any(|above| self.files.contains_key(above)) {
                    return None;
                }
            }
            if matches!(change.edit, Edit::MoveTo(_)) && self.exists(target?) {
                return None;
            }
            if let Some(target) = target.filter(|target| !self.exists(target)) {
                for prefix in above(target).chain([target]).filter(|prefix| !self.exists(prefix)) {
                    let twin = |other: &String| key(other) == key(prefix);
                    if self.files.keys().chain(&self.directories).any(twin) {
                        return None;
                    }
                    let is_file = prefix == target;
                    match created.insert(key(prefix), (prefix, is_file)) {
                        Some((spelled, was_file)) if spelled != prefix || was_file || is_file => return None,
                        _ => {}
                    }
                }
            }
            if matches!(change.edit, Edit::Delete | Edit::MoveTo(_)) {
                next.files.remove(path);
                left.extend(above(path).map(str::to_owned));
            }
            if let Some((target, text)) = new {
                next.files.insert(target.to_owned(), text);
                next.directories.extend(above(target).map(str::to_owned));
            }
        }
        // Directories that lost their last file go, except at the top.
        left.sort_by_key(|directory| std::cmp::Reverse(directory.len()));
        for directory in left.into_iter().filter(|directory| directory.contains('/')) {
            let inside = format!("{directory}/");
            if !next.files.keys().chain(&next.directories).any(|path| path.starts_with(&inside)) {
                next.directories.remove(&directory);
            }
        }
        Some(next)
    }
}

/// Puts numbers that fit the model where an edit has small ones.
fn fit(model: &Model, mut attempt: Attempt) -> Attempt {
    for change in &mut attempt.changes {
        let old = model.files.get(&change.path).map_or("", String::as_str);
        match &mut change.edit {
            Edit::Append { length, .. } => *length += old.len() as u64,
            // Offsets may still lie inside a character, or behind the end.
            Edit::Splice(splices) => splices[0].offset = splices[0].offset.min(old.len() as u64),
            _ => {}
        }
    }
    attempt
}

fn directories(space: &Space) -> BTreeSet<String> {
    let paths = snapshot(space.root()).into_keys().filter(|path| path.is_dir());
    let relative = paths.map(|path| path.strip_prefix(space.root()).unwrap().to_str().unwrap().to_owned());
    relative.filter(|path| !path.starts_with(".scriptorium")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn commits_do_what_the_model_does(attempts in prop::collection::vec(attempt(), 1..14)) {
        let space = Space::new();
        let mut model = Model::default();
        for attempt in attempts {
            let attempt = fit(&model, attempt);
            let expected = model.after(&attempt.changes);
            let result = {
                let guard = space.guard();
                let base = space.store.generation().unwrap();
                let commit = || space.store.commit(&*guard, base, &attempt.changes, &About::default());
                match attempt.death {
                    Some((step, torn)) => {
                        let (result, died) = fault::crashing(step, torn, commit);
                        // A death is told as a failure; what the model says then is not known to have been checked.
                        if died && result.is_err() {
                            prop_assert_eq!(&contents(&space.another()), &model.files);
                            continue;
                        }
                        result
                    }
                    None => commit(),
                }
            };
            prop_assert_eq!(result.is_ok(), expected.is_some(), "{:?} on {:?}: {:?}", attempt.changes, model, result);
            if let Some(expected) = expected {
                model = expected;
            }
            prop_assert_eq!(&contents(&space.another()), &model.files);
            if attempt.recover {
                let recovery = space.store.recover(&*space.guard()).unwrap();
                prop_assert_eq!((recovery.kept, recovery.damaged), (0, false));
                prop_assert_eq!(&directories(&space), &model.directories);
            }
        }
    }
}

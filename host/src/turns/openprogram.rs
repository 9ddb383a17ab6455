//! Conversations as OpenProgram keeps them: `<root>/<session>/history/<seq>-<role letter>-<id>.json`, a file a node.
//!
//! A mark replaces a node's file: the new file is written beside it with the old one's mode and time of change, is on the medium
//! before it takes the name, and takes it only while the old one still reads as it did when the mark was planned. So a node's file
//! is whole at every moment, and a crash leaves at most a file whose name begins with [`TEMPORARY`], which the next mark removes.
//! Whoever marks holds the `flock` of the directory `history`.
//!
//! Which file of a session names its head, and which branches were put away, is not known here: the newest branch counts as the
//! current one unless the caller says otherwise.
//!
//! Knows names, files and the key `id`. Must not know what else a node says.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, Stat};
use rustix::io::Errno;
use serde::Deserialize;

use super::Heads;
use super::place::{self, fault, is_sound, open_regular, open_root, read_whole, seconds};
use super::store::{
    Listed, Listing, MarkPlanner, Marked, NodeSink, Plan, SessionStore, StoreError, StoreFault, StoreLimits,
};
use crate::store::disk::{self, Time};

/// The directory of a session that has its nodes.
const HISTORY: &str = "history";
/// How the name of a node's file ends.
const NODE: &str = ".json";
/// How the name of a file begins that is to replace a node's.
pub const TEMPORARY: &str = ".recollex-mark-";
/// Files that are brought to the medium together.
const GROUP: usize = 64;

/// Session directories of OpenProgram below one directory.
#[derive(Clone, Debug)]
pub struct OpenProgramSessions {
    root: PathBuf,
    limits: StoreLimits,
}

impl OpenProgramSessions {
    /// The sessions in `root`. Touches nothing.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), limits: StoreLimits::default() }
    }

    /// Within these limits.
    #[must_use]
    pub fn limits(self, limits: StoreLimits) -> Self {
        Self { limits, ..self }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.root.join(id).join(HISTORY)
    }

    /// A session's directory of nodes.
    fn history(&self, id: &str) -> Result<OwnedFd, StoreFault> {
        let path = self.path(id);
        if !is_sound(id) || id.contains('/') {
            return Err(StoreFault::new(&self.root, format!("`{id}` cannot be the name of a session")).of(id));
        }
        let failed = |error| fault(&path, "the session cannot be opened", error).of(id);
        let session = disk::open_dir(open_root(&self.root)?, id).map_err(failed)?;
        disk::open_dir(session, HISTORY).map_err(failed)
    }

    /// The names of its nodes' files, in their order.
    fn names(&self, history: &OwnedFd, path: &Path) -> Result<Vec<String>, StoreFault> {
        let (mut names, mut bad) = (Vec::new(), None);
        disk::each_name(history, |name, _| {
            if !name.ends_with(NODE.as_bytes()) || name.starts_with(b".") || names.len() > self.limits.nodes {
                return;
            }
            match std::str::from_utf8(name) {
                Ok(name) => names.push(name.to_owned()),
                Err(_) => bad = Some(String::from_utf8_lossy(name).into_owned()),
            }
        })
        .map_err(|error| fault(path, "the session's nodes cannot be listed", error))?;
        if let Some(name) = bad {
            return Err(StoreFault::new(&path.join(name), "this name is not UTF-8; rename the file"));
        }
        if names.len() > self.limits.nodes {
            return Err(over(path, "nodes", self.limits.nodes as u64));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn node(&self, history: &OwnedFd, name: &str, path: &Path) -> Result<(Vec<u8>, Stat), StoreFault> {
        let (file, stat) = open_regular(history, name, path, false).map_err(|fault| match fault {
            // It was there a moment ago.
            fault if !path.exists() => fault.passing(),
            fault => fault,
        })?;
        match read_whole(file, self.limits.node_bytes) {
            Ok(Some(data)) => Ok((data, stat)),
            Ok(None) => Err(over(path, "node-bytes", self.limits.node_bytes)),
            Err(error) => Err(fault(path, "it cannot be read", error)),
        }
    }

    /// When the newest node's file was changed; none: there is no node.
    fn updated_at(&self, id: &str) -> Result<Option<f64>, StoreFault> {
        let path = self.path(id);
        let history = match self.history(id) {
            Err(_) if matches!(path.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound) => {
                return Ok(None);
            }
            history => history?,
        };
        let mut newest: Option<Time> = None;
        for name in self.names(&history, &path)? {
            match disk::look(&history, &*name) {
                Ok(Some(stat)) => newest = newest.max(Some(Time::modified(&stat))),
                Ok(None) => {}
                Err(error) => return Err(fault(&path.join(name), "it cannot be looked at", error)),
            }
        }
        Ok(newest.map(seconds))
    }
}

impl SessionStore for OpenProgramSessions {
    fn list(&self) -> Result<Listing, StoreFault> {
        let failed = |error| fault(&self.root, "the sessions cannot be listed", error);
        let mut names = disk::names(open_root(&self.root)?).map_err(failed)?;
        names.retain(|(name, kind)| !name.starts_with(b".") && !matches!(kind, FileType::RegularFile));
        if names.len() > self.limits.conversations {
            return Err(over(&self.root, "conversations", self.limits.conversations as u64));
        }
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut listing = Listing::default();
        for (name, _) in names {
            let Some(id) = std::str::from_utf8(&name).ok().filter(|name| is_sound(name)) else {
                let shown = String::from_utf8_lossy(&name);
                let fault =
                    StoreFault::new(&self.root.join(&*shown), "this name cannot be that of a session; rename it");
                listing.faults.push(fault.of(&shown));
                continue;
            };
            match self.updated_at(id) {
                Ok(Some(updated_at)) => {
                    listing.conversations.push(Listed { id: id.to_owned(), updated_at, told: false });
                }
                Ok(None) => {}
                Err(fault) => listing.faults.push(fault.of(id)),
            }
        }
        Ok(listing)
    }

    fn read(&self, id: &str, sink: &mut dyn NodeSink) -> Result<Heads, StoreError> {
        let path = self.path(id);
        let history = self.history(id)?;
        let mut total = 0_u64;
        for name in self.names(&history, &path).map_err(|fault| fault.of(id))? {
            let (data, _) = self.node(&history, &name, &path.join(&name)).map_err(|fault| fault.of(id))?;
            total += data.len() as u64;
            if total > self.limits.conversation_bytes {
                return Err(over(&path, "conversation-bytes", self.limits.conversation_bytes).of(id).into());
            }
            sink.file(&format!("{HISTORY}/{name}"), &data)?;
        }
        Ok(Heads { current: None, archived: Vec::new() })
    }

    fn mark(&self, id: &str, nodes: &[String], planner: &mut dyn MarkPlanner) -> Result<Marked, StoreError> {
        let path = self.path(id);
        let of = |fault: StoreFault| fault.of(id);
        let history = self.history(id)?;
        let is_alone = match place::lock(&history, self.limits.wait_ms) {
            Ok(Some(false)) => {
                return Err(
                    of(StoreFault::new(&path, "another program is marking this session; try again").passing()).into()
                );
            }
            Ok(held) => held.is_some(),
            Err(error) => return Err(of(fault(&path, "the session cannot be locked", error)).into()),
        };
        if is_alone {
            clear(&history).map_err(|error| of(fault(&path, "leftovers cannot be removed", error)))?;
        }
        let names = self.names(&history, &path).map_err(of)?;
        let mut files =
            Files { store: self, history: &history, path: &path, by_name: BTreeMap::new(), by_content: None };
        for name in &names {
            if let Some(id) = named_id(name) {
                files.by_name.entry(id).or_default().push(name);
            }
        }
        let mut marked = Marked::default();
        for group in nodes.chunks(GROUP) {
            let mut drafts = Vec::new();
            for node in group {
                match files.draft(node, &names, drafts.len(), planner) {
                    Ok(Drafted::New(draft)) => drafts.push(draft),
                    Ok(Drafted::Marked) => marked.done.push(node.clone()),
                    Ok(Drafted::Left(fault)) => marked.left.push((node.clone(), of(fault))),
                    Err(error) => {
                        drafts.iter().for_each(|draft| draft.remove(&history));
                        return Err(error.into());
                    }
                }
            }
            files.put(drafts, &mut marked, &of);
        }
        if !marked.done.is_empty()
            && let Err(error) = disk::sync(&history)
        {
            let fault = of(fault(&path, "the marks may be lost when the power goes", error));
            marked.left.extend(marked.done.drain(..).map(|node| (node, fault.clone())));
        }
        Ok(marked)
    }
}

/// A session's files while some are being marked.
struct Files<'a> {
    store: &'a OpenProgramSessions,
    history: &'a OwnedFd,
    path: &'a Path,
    /// Names by the id that stands in them.
    by_name: BTreeMap<&'a str, Vec<&'a str>>,
    /// Names by the id that stands in the file: looked up only where the name does not say it, because all files are read.
    by_content: Option<BTreeMap<String, Vec<String>>>,
}

/// What is to become of a node.
enum Drafted {
    New(Draft),
    Marked,
    Left(StoreFault),
}

/// A file that is to replace a node's.
struct Draft {
    node: String,
    name: String,
    temporary: String,
    file: OwnedFd,
    /// What the node's file read when the mark was planned.
    before: Vec<u8>,
}

impl Draft {
    /// That it stays is no harm: the next mark removes it.
    fn remove(&self, history: &OwnedFd) {
        let _ = disk::unlink(history, &self.temporary);
    }
}

impl Files<'_> {
    /// Writes the new file of a node beside the old one.
    fn draft(
        &mut self,
        node: &str,
        names: &[String],
        number: usize,
        planner: &mut dyn MarkPlanner,
    ) -> Result<Drafted, crate::error::Error> {
        let mut why = None;
        let named: Vec<String> = self.by_name.get(node).into_iter().flatten().map(|name| (*name).to_owned()).collect();
        for name in &named {
            match self.draft_of(node, name, number, planner)? {
                Drafted::Left(fault) => why = why.or(Some(fault)),
                drafted => return Ok(drafted),
            }
        }
        for name in self.holding(node, names) {
            if named.contains(&name) {
                continue;
            }
            match self.draft_of(node, &name, number, planner)? {
                Drafted::Left(fault) => why = why.or(Some(fault)),
                drafted => return Ok(drafted),
            }
        }
        Ok(Drafted::Left(
            why.unwrap_or_else(|| StoreFault::new(self.path, format!("the node `{node}` is not there any more"))),
        ))
    }

    /// The names of the files that say that they are this node.
    fn holding(&mut self, node: &str, names: &[String]) -> Vec<String> {
        #[derive(Deserialize)]
        struct Identified<'a> {
            #[serde(borrow)]
            id: Cow<'a, str>,
        }
        let (store, history, path) = (self.store, self.history, self.path);
        let index = self.by_content.get_or_insert_with(|| {
            let mut index: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for name in names {
                let Ok((data, _)) = store.node(history, name, &path.join(name)) else { continue };
                if let Ok(Identified { id }) = serde_json::from_slice(&data) {
                    index.entry(id.into_owned()).or_default().push(name.clone());
                }
            }
            index
        });
        index.get(node).cloned().unwrap_or_default()
    }

    fn draft_of(
        &self,
        node: &str,
        name: &str,
        number: usize,
        planner: &mut dyn MarkPlanner,
    ) -> Result<Drafted, crate::error::Error> {
        let path = self.path.join(name);
        let left = |message: &str| Ok(Drafted::Left(StoreFault::new(&path, message)));
        let (before, stat) = match self.store.node(self.history, name, &path) {
            Ok(read) => read,
            Err(fault) => return Ok(Drafted::Left(fault)),
        };
        let Ok(text) = std::str::from_utf8(&before) else { return left("it is not UTF-8, and is not marked") };
        let splice = match planner.splice(node, text)? {
            Plan::Splice(splice) => splice,
            Plan::Marked => return Ok(Drafted::Marked),
            Plan::Refused(why) => return left(&why),
        };
        let Some(after) = splice.apply(text) else { return left("the planned mark does not fit the file") };
        let temporary = format!("{TEMPORARY}{}-{number}", std::process::id());
        match write(self.history, &temporary, after.as_bytes(), &stat) {
            Ok(file) => {
                let (node, name) = (node.to_owned(), name.to_owned());
                Ok(Drafted::New(Draft { node, name, temporary, file, before }))
            }
            Err(error) => {
                let _ = disk::unlink(self.history, &temporary);
                Ok(Drafted::Left(fault(&path, "its mark cannot be written", error)))
            }
        }
    }

    /// Puts new files in the place of those that are still what they were.
    fn put(&self, drafts: Vec<Draft>, marked: &mut Marked, of: &dyn Fn(StoreFault) -> StoreFault) {
        let (rest, files): (Vec<_>, Vec<_>) = drafts
            .into_iter()
            .map(|Draft { node, name, temporary, file, before }| ((node, name, temporary, before), file))
            .unzip();
        let synced = disk::sync_all(&files).map_err(|(_, error)| error);
        for (node, name, temporary, before) in rest {
            let path = self.path.join(&name);
            let result = synced.map_err(|error| fault(&path, "its mark cannot be written", error)).and_then(|()| {
                let (now, _) = self.store.node(self.history, &name, &path)?;
                if now != before {
                    let message = "another program has changed it meanwhile; it is marked the next time";
                    return Err(StoreFault::new(&path, message).passing());
                }
                disk::rename(self.history, &temporary, self.history, &name)
                    .map_err(|error| fault(&path, "its mark cannot be put in place", error))
            });
            match result {
                Ok(()) => marked.done.push(node),
                Err(fault) => {
                    let _ = disk::unlink(self.history, &temporary);
                    marked.left.push((node, of(fault)));
                }
            }
        }
    }
}

/// Writes a file that has the mode, owner and time of change of another.
fn write(history: &OwnedFd, name: &str, data: &[u8], like: &Stat) -> disk::Sys<OwnedFd> {
    // Without a lock of the directory there may be one that nobody has removed.
    disk::unlink(history, name)?;
    let file = disk::create(history, name)?;
    let own = rustix::fs::fstat(&file)?;
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid) {
        let (owner, group) = (rustix::fs::Uid::from_raw(like.st_uid), rustix::fs::Gid::from_raw(like.st_gid));
        rustix::fs::fchown(&file, Some(owner), Some(group))?;
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(like.st_mode))?;
    disk::write_at(&file, data, 0)?;
    disk::date(&file, Time::modified(like))?;
    Ok(file)
}

/// Removes what a crash left.
fn clear(history: &OwnedFd) -> Result<(), Errno> {
    let mut leftovers = Vec::new();
    disk::each_name(history.as_fd(), |name, _| {
        if let Ok(name) = std::str::from_utf8(name)
            && name.starts_with(TEMPORARY)
        {
            leftovers.push(name.to_owned());
        }
    })?;
    leftovers.iter().try_for_each(|name| disk::unlink(history, name).map(|_| ()))
}

/// The id in `<seq>-<role letter>-<id>.json`.
fn named_id(name: &str) -> Option<&str> {
    let mut parts = name.strip_suffix(NODE)?.splitn(3, '-');
    let (seq, _role) = (parts.next()?, parts.next()?);
    let id = parts.next()?;
    (!seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

fn over(path: &Path, limit: &str, value: u64) -> StoreFault {
    StoreFault::new(path, format!("the limit `{limit}` of conversations allows {value}, and there is more"))
}

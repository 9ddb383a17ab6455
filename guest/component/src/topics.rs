//! The topics of a workspace: which there are, their texts when somebody asks, and the table of what is known of them,
//! brought up to date.
//!
//! Topics that have not changed are not read, and neither are archives. Knows files, digests and the table; what stands in
//! a topic core's `topic` knows.

use core::mem;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use recollex_core::digest::{Digest, FileHasher};
use recollex_core::ids::TopicPath;
use recollex_core::source::Limits;
use recollex_core::table::{CommittedTopics, Differences, Save, TOPIC_TABLE, TopicNote, TopicTable};
use recollex_core::views::RuntimeState;

use crate::bindings::exports::recollex::memory::workspace as wit;
use crate::bindings::recollex::memory::store::{Area, Entry, Kind, Stamp, StoreError};
use crate::cache;
use crate::convert;
use crate::evidence::Archives;
use crate::session;
use crate::tree::{self, Piece, Reader};

/// How often the topics are gone through again because archives changed what some of them say.
const ROUNDS: u32 = 4;

/// What a session keeps from one call to the next, so that it is neither read nor sorted again. Whatever others write
/// meanwhile, it stays true: each statement of the table names the content of a file that it is about, and the order names the
/// file that it was read from.
#[derive(Clone, Default)]
pub(crate) struct Kept(Rc<KeptHere>);

#[derive(Default)]
struct KeptHere {
    table: RefCell<Option<TopicTable>>,
    order: RefCell<Option<(Digest, RuntimeState)>>,
}

impl Kept {
    /// The order that was read from a file with this digest. It is out of this place until it is kept again.
    pub(crate) fn take_order(&self, digest: Digest) -> Option<RuntimeState> {
        self.0.order.take().filter(|(of, _)| *of == digest).map(|(_, order)| order)
    }

    /// Keeps the order that a file with this digest says.
    pub(crate) fn keep_order(&self, digest: Digest, order: RuntimeState) {
        self.0.order.replace(Some((digest, order)));
    }
}

impl Drop for Topics {
    fn drop(&mut self) {
        // One that was not brought up to date may say of topics what was not found out.
        if !self.is_loaded {
            return;
        }
        let table = mem::replace(&mut self.table, TopicTable::new(&Limits::default()));
        self.kept.0.table.replace(Some(table));
    }
}

/// All topics of a workspace, hidden ones included: what is unique must be so among all. Who shows something asks the view.
pub(crate) struct Topics {
    pub(crate) table: TopicTable,
    /// Where the table goes for the next call.
    kept: Kept,
    /// The table is up to date.
    is_loaded: bool,
    files: BTreeMap<TopicPath, File>,
    /// The first thing that went wrong while a text was read for somebody who can only be told that there is none.
    failed: RefCell<Option<wit::Error>>,
}

struct File {
    entry: Entry,
    /// None: it is not UTF-8.
    text: OnceCell<Option<String>>,
}

impl Topics {
    /// Brings the table up to date with the files that are there. `digest_of` tells the digest of a file of the workspace,
    /// as far as it is known without reading it.
    pub(crate) fn load(
        entries: impl IntoIterator<Item = Entry>,
        digest_of: &dyn Fn(&str) -> Option<Digest>,
        archives: &Archives,
        kept: &Kept,
        limits: &Limits,
    ) -> Result<Self, wit::Error> {
        let table = kept.0.table.take();
        let table = table.unwrap_or_else(|| TopicTable::load(cache::read_all(TOPIC_TABLE).unwrap_or_default(), limits));
        let files = entries.into_iter().filter(tree::is_file);
        let files = files
            .filter_map(|entry| Some((TopicPath::parse(&entry.path).ok()?, File { entry, text: OnceCell::new() })));
        let mut topics =
            Self { table, kept: kept.clone(), is_loaded: false, files: files.collect(), failed: RefCell::default() };
        let there = topics.files.keys().map(|path| (path, digest_of(path.as_str())));
        let Differences { gone, unknown } = topics.table.differences(there);
        for path in gone {
            topics.table.apply(&TopicNote::gone(&path));
        }
        for path in unknown {
            topics.take_in(&path, archives)?;
        }
        for _ in 0..ROUNDS {
            let stale = topics.table.settle(&|path| digest_of(path).or_else(|| topics_archive(path)), archives);
            archives.check()?;
            if stale.is_empty() {
                break;
            }
            for path in stale {
                topics.take_in(&path, archives)?;
            }
        }
        topics.is_loaded = true;
        Ok(topics)
    }

    /// Supposes that there were such a topic: nothing of it is kept.
    pub(crate) fn suppose(&mut self, path: &TopicPath, text: &str, archives: &Archives) {
        self.table.apply(&TopicNote::read(path, text, archives));
        let stamp = Stamp { size: text.len() as u64, token: String::new(), racy: true };
        let entry = Entry { path: path.to_string(), kind: Kind::File, stamp };
        self.files.insert(path.clone(), File { entry, text: OnceCell::from(Some(text.to_owned())) });
    }

    /// Reads a topic, and has the table know it.
    fn take_in(&mut self, path: &TopicPath, archives: &Archives) -> Result<(), wit::Error> {
        let note = match self.read(path)? {
            Some(text) => TopicNote::read(path, text, archives),
            None => TopicNote::unreadable(path, self.digest(path)?),
        };
        archives.check()?;
        self.table.apply(&note);
        Ok(())
    }

    /// Keeps the table for the next call. Where there is no workspace, looking leaves nothing behind.
    pub(crate) fn save(&mut self) {
        if !session::workspace_id().is_ok_and(|id| id.is_some()) {
            return;
        }
        let kept = match self.table.save() {
            Save::Nothing => return,
            Save::Replace(bytes) => cache::put(TOPIC_TABLE, &bytes),
            Save::Append { length, bytes } => cache::append(TOPIC_TABLE, length, &bytes),
        };
        if kept {
            self.table.saved();
        } else {
            // Somebody else has kept something meanwhile: both are true, and the next save is of everything.
            self.table.forget_file();
        }
    }

    /// The topics there are, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &TopicPath> {
        self.files.keys()
    }

    /// The text of a topic; none if there is no such topic, or it is not UTF-8.
    pub(crate) fn read(&self, path: &TopicPath) -> Result<Option<&str>, wit::Error> {
        let Some(file) = self.files.get(path) else { return Ok(None) };
        if file.text.get().is_none() {
            let text = text_of(&file.entry).map_err(|error| convert::store_error(error, Some(path.as_str())))?;
            let _ = file.text.set(text);
        }
        Ok(file.text.get().and_then(Option::as_deref))
    }

    /// The same for core, which can only be told that there is none: [`Topics::check`] says whether that was so.
    pub(crate) fn text(&self, path: &TopicPath) -> Option<&str> {
        self.read(path).unwrap_or_else(|error| {
            self.failed.borrow_mut().get_or_insert(error);
            None
        })
    }

    /// Fails if a topic could not be read: then nothing that was decided may be done.
    pub(crate) fn check(&self) -> Result<(), wit::Error> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// What an edit must know.
    pub(crate) fn committed<'t>(&'t self, text: &'t dyn Fn(&TopicPath) -> Option<&'t str>) -> CommittedTopics<'t> {
        CommittedTopics { table: &self.table, text }
    }

    /// The digest of a topic's bytes, whatever they are.
    fn digest(&self, path: &TopicPath) -> Result<Digest, wit::Error> {
        let Some(file) = self.files.get(path) else { return Ok(FileHasher::new().finish().root) };
        let mut hasher = FileHasher::new();
        let mut reader = Reader::new(Area::Tree, &file.entry);
        loop {
            match reader.next() {
                Ok(Some(piece)) => hasher.push(piece.as_bytes()),
                Ok(None) => return Ok(hasher.finish().root),
                Err(error) => return Err(convert::store_error(error, Some(path.as_str()))),
            }
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// The digest of an archive whose version nobody has read yet: of what lies there now.
fn topics_archive(path: &str) -> Option<Digest> {
    let entry = tree::find(Area::Tree, path).ok()?.filter(tree::is_file)?;
    let mut hasher = FileHasher::new();
    let mut reader = Reader::listed(&entry);
    while let Some(piece) = reader.next().ok()? {
        hasher.push(piece.as_bytes());
    }
    Some(hasher.finish().root)
}

/// A file's text; none if it is not UTF-8.
fn text_of(entry: &Entry) -> Result<Option<String>, StoreError> {
    let mut text = String::new();
    let mut reader = Reader::new(Area::Tree, entry);
    while let Some(piece) = reader.next()? {
        match piece {
            Piece::Text(piece) if text.is_empty() => text = piece,
            Piece::Text(piece) => text.push_str(&piece),
            Piece::Bytes(_) => return Ok(None),
        }
    }
    Ok(Some(text))
}

//! Core's values as the types of `wit/archive-view.wit`, and back.

use recollex_core::source::{CatalogueFile, EntryKind, FileClass, Given, Listed, Selection, Standing, Tally, Voice};

use crate::bindings::exports::recollex::memory::archive_view as wit;
use crate::shared;

pub(crate) fn given(origin: wit::Origin) -> Given {
    match origin {
        wit::Origin::Workspace => Given::InWorkspace,
        wit::Origin::Directory => Given::InDirectory,
        wit::Origin::Named => Given::AnyPath,
    }
}

pub(crate) fn entry_kind(what: wit::Obstacle) -> EntryKind {
    match what {
        wit::Obstacle::Symlink => EntryKind::Symlink,
        wit::Obstacle::Special => EntryKind::Special,
        wit::Obstacle::Undecodable => EntryKind::Undecodable,
        wit::Obstacle::Unreadable => EntryKind::Unreadable,
    }
}

pub(crate) fn selection(of: wit::Selection) -> Selection {
    match of {
        wit::Selection::All => Selection::All,
        wit::Selection::File(number) => Selection::File(number),
        wit::Selection::Voice(number) => Selection::Voice(number),
    }
}

pub(crate) fn class(class: FileClass) -> wit::FileClass {
    match class {
        FileClass::Archive => wit::FileClass::Archive,
        FileClass::Branches => wit::FileClass::Branches,
        FileClass::OlderArchive => wit::FileClass::OlderArchive,
        FileClass::Topic => wit::FileClass::Topic,
        FileClass::Derived => wit::FileClass::Derived,
        FileClass::OldLayout => wit::FileClass::OldLayout,
        FileClass::Other => wit::FileClass::Other,
    }
}

pub(crate) fn file(file: CatalogueFile) -> wit::ViewedFile {
    wit::ViewedFile {
        number: file.number,
        path: file.path,
        class: class(file.class),
        conversation: file.conversation,
        bytes: file.bytes,
        records: file.records,
        clean: file.clean,
    }
}

pub(crate) fn voice(voice: Voice) -> wit::Voice {
    wit::Voice {
        number: voice.number,
        standing: match voice.standing {
            Standing::Trusted => wit::Standing::Trusted,
            Standing::Hint => wit::Standing::Hint,
            Standing::Unnamed => wit::Standing::Unnamed,
        },
        speaker: voice.speaker.map(shared::speaker),
        label: voice.label,
        records: voice.records,
        files: voice.files,
    }
}

pub(crate) fn tally(tally: Tally) -> wit::Tally {
    wit::Tally { voices: tally.voices, records: tally.records }
}

pub(crate) fn listed(listed: Listed) -> wit::ListedRecord {
    wit::ListedRecord {
        number: listed.number,
        file: listed.file,
        voice: listed.voice,
        record: shared::record(listed.record),
    }
}

//! Files in a zip archive, read as a stream.
//!
//! Knows what is needed to read safely what somebody sent: names are only looked at and shown, never used as paths; the
//! directory is read entry by entry, whatever it says of its size; nothing is unpacked but in pieces, never more than the
//! directory declares, and an entry is read to its end and its checksum compared before anything of it is used. Must not
//! know what the files say.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, ErrorKind, FileReader, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, RangeReader, ZipArchive,
    ZipArchiveEntryWayfinder, ZipFileHeaderRecord,
};

use super::interrupt::Interrupt;
use crate::cli::failure::Failure;

/// Files that are read out of one archive, at most: their names are held in memory.
const ENTRIES_MAX: usize = 200_000;
/// Bytes unpacked at a time to check an entry.
const STEP_BYTES: usize = 256 << 10;

/// A zip archive with the files in it that are wanted.
pub struct Zip {
    archive: ZipArchive<FileReader>,
    entries: Vec<Entry>,
    left_out: Vec<(String, &'static str, String)>,
}

/// A file in the archive.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As the directory has it; what is no UTF-8 in it is replaced.
    pub name: String,
    /// Bytes, unpacked, as declared: it never becomes more.
    pub size: u64,
    way: ZipArchiveEntryWayfinder,
    is_stored: bool,
}

impl Zip {
    /// Reads the directory of the archive in `file`, which people know as `shown`, and chooses the files whose names are
    /// `wanted`. Together they may unpack to at most `unpacked_bytes_max` bytes.
    ///
    /// # Errors
    /// It is damaged or cut, or what is wanted of it is too much.
    pub fn open(
        file: File,
        shown: String,
        wanted: impl Fn(&str) -> bool,
        unpacked_bytes_max: u64,
    ) -> Result<Self, Failure> {
        let fail = |error: rawzip::Error| damaged(error).at_path(shown.clone());
        let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(fail)?;
        let (mut entries, mut left_out, mut bytes) = (Vec::new(), Vec::new(), 0_u64);
        let mut records = archive.entries(&mut buffer);
        while let Some(record) = records.next_entry().map_err(fail)? {
            let name = String::from_utf8_lossy(record.file_path().as_bytes()).into_owned();
            if record.is_dir() || !wanted(&name) {
                continue;
            }
            match refused(&record) {
                Some((reason, message)) => left_out.push((name, reason, message)),
                None => {
                    let size = record.uncompressed_size_hint();
                    bytes = bytes.saturating_add(size);
                    let is_stored = record.compression_method() == CompressionMethod::STORE;
                    entries.push(Entry { name, size, way: record.wayfinder(), is_stored });
                }
            }
            if entries.len() + left_out.len() > ENTRIES_MAX {
                let message = format!("the archive has more than {ENTRIES_MAX} files to read");
                return Err(Failure::limit("zip-entries", message)
                    .at_path(shown)
                    .next("unpack it, and name the directory"));
            }
        }
        if bytes > unpacked_bytes_max {
            let message = format!("the archive unpacks to {bytes} bytes, and {unpacked_bytes_max} are allowed");
            return Err(Failure::limit("unpacked-bytes", message)
                .at_path(shown)
                .next("if you trust it, raise the limit: --limit unpacked_bytes=N"));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { archive, entries, left_out })
    }

    /// The files that can be read, by name.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().cloned()
    }

    /// Files that were wanted and cannot be read: name, reason, and the reason in words.
    pub fn left_out(&self) -> &[(String, &'static str, String)] {
        &self.left_out
    }

    /// Unpacks an entry to its end without using it, and compares its size and checksum. `checked` hears of every step.
    ///
    /// # Errors
    /// `InvalidData` if it is not what the directory says; that the archive cannot be read; that the work is to stop.
    pub fn check(&self, entry: &Entry, interrupt: &Interrupt, checked: &dyn Fn(u64)) -> io::Result<()> {
        let found = self.archive.get_entry(entry.way).map_err(fault)?;
        let mut stream = found.verifying_reader(unpacked(entry, found.reader()));
        let mut buffer = vec![0; STEP_BYTES];
        loop {
            if interrupt.asked() {
                return Err(Interrupt::error());
            }
            match stream.read(&mut buffer).map_err(undone)? {
                0 => return Ok(()),
                read => checked(read as u64),
            }
        }
    }

    /// An entry's bytes, as many as were declared.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn read(this: &Rc<Self>, entry: &Entry) -> io::Result<Box<dyn Read>> {
        let (start, end) = this.archive.get_entry(entry.way).map_err(fault)?.compressed_data_range();
        let packed = RangeReader::new(Shared(Rc::clone(this)), start..end);
        Ok(Box::new(unpacked(entry, packed).take(entry.size)))
    }
}

fn unpacked<R: Read>(entry: &Entry, packed: R) -> Unpacked<R> {
    if entry.is_stored {
        Unpacked::Stored(packed)
    } else {
        Unpacked::Deflated(DeflateDecoder::new(BufReader::with_capacity(STEP_BYTES, packed)))
    }
}

enum Unpacked<R> {
    Stored(R),
    Deflated(DeflateDecoder<BufReader<R>>),
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(stream) => stream.read(buffer),
            Self::Deflated(stream) => stream.read(buffer).map_err(undone),
        }
    }
}

/// The archive, kept open by who reads from it.
struct Shared(Rc<Zip>);

impl rawzip::ReaderAt for Shared {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        rawzip::ReaderAt::read_at(self.0.archive.get_ref(), buffer, offset)
    }
}

/// Why an entry cannot be read, if it cannot.
fn refused(record: &ZipFileHeaderRecord<'_>) -> Option<(&'static str, String)> {
    let method = record.compression_method();
    if record.flags().is_encrypted() {
        Some(("encrypted", "is encrypted: unpack it with its password first".to_owned()))
    } else if record.mode().is_symlink() {
        Some(("symlink", "is a symbolic link, and is not followed".to_owned()))
    } else if method != CompressionMethod::STORE && method != CompressionMethod::DEFLATE {
        let message = format!("is compressed in a way that is not known here ({}): unpack it first", method.as_u16());
        Some(("compression", message))
    } else {
        None
    }
}

fn damaged(error: rawzip::Error) -> Failure {
    match error.into_kind() {
        ErrorKind::IO(error) => Failure::usage("io", format!("the zip archive cannot be read: {error}")),
        kind => Failure::usage("damaged", format!("the zip archive is damaged or cut: {kind}"))
            .next("download it again; nothing was taken in"),
    }
}

fn fault(error: rawzip::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::IO(error) => error,
        kind => io::Error::new(io::ErrorKind::InvalidData, kind.to_string()),
    }
}

/// Faults of the packed data are faults of the archive, whatever kind the decoder calls them.
fn undone(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::InvalidData, error.to_string())
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use rawzip::ZipArchiveWriter;

    use super::*;

    const MANY: u64 = 1 << 40;

    /// An archive with these files, packed.
    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipArchiveWriter::new(Vec::new());
        for (name, bytes) in files {
            let (mut entry, config) =
                archive.new_file(*name).compression_method(CompressionMethod::DEFLATE).start().unwrap();
            let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
            let mut writer = config.wrap(encoder);
            writer.write_all(bytes).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap()
    }

    fn open(bytes: &[u8], most: u64) -> Result<Rc<Zip>, Failure> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        Zip::open(file, "x.zip".to_owned(), |name| name.ends_with(".json"), most).map(Rc::new)
    }

    fn read(zip: &Rc<Zip>, entry: &Entry) -> io::Result<Vec<u8>> {
        zip.check(entry, &Interrupt::default(), &|_| {})?;
        let mut bytes = Vec::new();
        Zip::read(zip, entry)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn files_come_by_name_and_byte_for_byte() {
        let long = "long enough to be packed ".repeat(50_000);
        let zip = open(
            &packed(&[("b.json", long.as_bytes()), ("x.png", b"x"), ("a/c.json", b""), ("a/../z.json", b"z")]),
            MANY,
        );
        let zip = zip.ok().unwrap();
        let all: Vec<(String, Vec<u8>)> =
            zip.entries().map(|entry| (entry.name.clone(), read(&zip, &entry).unwrap())).collect();
        let name = |at: usize| &*all[at].0;
        assert_eq!((all.len(), name(0)), (3, "a/c.json"));
        assert_eq!((name(1), &*all[1].1), ("b.json", long.as_bytes()));
    }

    #[test]
    fn what_would_unpack_to_too_much_is_refused_before_anything_is_unpacked() {
        let bomb = packed(&[("a.json", &vec![b' '; 1 << 20]), ("b.json", &vec![b' '; 1 << 20])]);
        assert!(bomb.len() < 10_000);
        let failure = open(&bomb, (2 << 20) - 1).err().unwrap();
        assert_eq!((&*failure.reason, failure.exit), ("unpacked-bytes", crate::cli::failure::Exit::LIMIT));
        assert!(open(&bomb, 2 << 20).is_ok());

        // One that says less than it holds gives what it says and no more, and is damaged.
        let mut liar = packed(&[("a.json", &vec![b' '; 1 << 20])]);
        let directory = liar.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
        liar[directory + 24..directory + 28].copy_from_slice(&100_u32.to_le_bytes());
        let zip = open(&liar, 100).ok().unwrap();
        let entry = zip.entries().next().unwrap();
        assert_eq!(read(&zip, &entry).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let mut bytes = Vec::new();
        Zip::read(&zip, &entry).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 100);
    }

    #[test]
    fn damage_anywhere_is_told_before_anything_is_used() {
        let text = "what somebody said, and what somebody else said\n".repeat(200);
        let whole = packed(&[("a.json", text.as_bytes())]);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let Ok(zip) = open(&bytes, MANY) else { continue };
            for entry in zip.entries() {
                // Either it is as it was, or it is not used.
                if let Ok(bytes) = read(&zip, &entry) {
                    assert_eq!(bytes, text.as_bytes(), "byte {at}");
                }
            }
        }
        for end in 0..whole.len() {
            let opened = open(&whole[..end], MANY).map(|zip| zip.entries().count());
            assert!(opened.is_err(), "cut at {end}");
        }
    }

    #[test]
    fn what_is_locked_or_packed_otherwise_is_named_and_left_out() {
        let mut bytes = packed(&[("a.json", b"a"), ("b.json", b"b"), ("c.json", b"c")]);
        let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        let next = directory + 4 + bytes[directory + 4..].windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        bytes[directory + 8] |= 1;
        bytes[next + 10] = 93;
        let zip = open(&bytes, MANY).ok().unwrap();
        assert_eq!(zip.entries().map(|entry| entry.name).collect::<Vec<_>>(), ["c.json"]);
        let reasons: Vec<(&str, &str)> = zip.left_out().iter().map(|(name, reason, _)| (&**name, *reason)).collect();
        assert_eq!(reasons, [("a.json", "encrypted"), ("b.json", "compression")]);
    }
}

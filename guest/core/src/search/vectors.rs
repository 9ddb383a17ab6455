//! Vectors of what documents mean, and the cache file that keeps them.
//!
//! A vector is kept for a **text**, by the digest of what was embedded, so that no text is embedded twice however often its
//! file is written anew. Beside it stands which **document** has which text, so that a search reads only what it has not
//! seen. Both are a cache: what cannot be read, or is of another model, is not there, and is embedded again.
//!
//! Numbers are whole ones from here on: a vector is put as bytes once, and what two of them have in common is an integer,
//! the same on every machine. Knows the layout and its limits; must not know models, or where files are.

use super::kept::Write;
use crate::digest::Digest;
use crate::table::bytes::{Check, Reader, check, put_number, put_text};
use std::collections::{BTreeMap, BTreeSet};

/// Where files of vectors lie in the cache area.
pub const VECTORS: &str = "vectors";

/// Numbers that a vector may have.
pub const DIMENSIONS: usize = 1 << 16;

const MAGIC: &[u8; 8] = b"RCLXVECT";
const VERSION: u32 = 1;
/// Of a block: its length, the counts of both kinds of entries, its check.
const BLOCK_BYTES: u64 = 4 + 4 + 4 + 8;
/// Of a vector beside its numbers.
const TEXT_BYTES: u64 = 16;
/// Of what says which text a document has.
const NOTE_BYTES: u64 = 32;
/// A cosine of 1.
const ONE: u64 = 1_000_000;

/// What identifies a text or a document here: the beginning of a SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 16]);

impl Key {
    /// Of a text that has nothing to embed. No text has it by chance.
    pub const BLANK: Key = Key([0; 16]);

    /// Of a text as it is embedded; one without anything but white space is [`Key::BLANK`].
    #[must_use]
    pub fn of_text(text: &str) -> Key {
        if text.trim().is_empty() { Key::BLANK } else { Key::of(&[text.as_bytes()]) }
    }

    /// Of these parts, none of which runs into the next.
    pub(super) fn of(parts: &[&[u8]]) -> Key {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        let digest = Digest::of(&bytes).0;
        Key(core::array::from_fn(|at| digest.get(at).copied().unwrap_or_default()))
    }
}

/// What a text means, as whole numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector(Box<[i8]>);

impl Vector {
    /// Of a model's numbers, the greatest of which becomes 127. None: there are none or too many, or one is not finite.
    #[must_use]
    pub fn new(numbers: &[f32]) -> Option<Vector> {
        if numbers.is_empty() || numbers.len() > DIMENSIONS || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        // Divided as doubles: no finite number is too small or too large for that.
        let most = numbers.iter().map(|number| f64::from(number.abs())).fold(0.0, f64::max);
        let put = |number: &f32| match most > 0.0 {
            true => (f64::from(*number) / most * 127.0).round() as i8,
            false => 0,
        };
        Some(Vector(numbers.iter().map(put).collect()))
    }

    /// How many numbers it has.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// The cosine of the angle between two vectors in millionths; 0 where it is not above that, where one of them points
    /// nowhere, and where they are of different lengths.
    #[must_use]
    pub fn cosine(&self, other: &Vector) -> u64 {
        cosine(&self.0, &other.0)
    }
}

fn cosine(one: &[i8], other: &[i8]) -> u64 {
    if one.len() != other.len() {
        return 0;
    }
    let dot = |a: &[i8], b: &[i8]| -> i64 {
        // 16 bits take a product; 32 take as many of them as there are dimensions.
        i64::from(a.iter().zip(b).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum::<i32>())
    };
    let (common, lengths) = (dot(one, other), dot(one, one).unsigned_abs() * dot(other, other).unsigned_abs());
    match u64::try_from(common) {
        Ok(common) if common > 0 && lengths > 0 => {
            // Exact up to the last digit: the root of the square of what is wanted.
            let square = u128::from(common).pow(2) * u128::from(ONE).pow(2) / u128::from(lengths);
            u64::try_from(square.isqrt()).unwrap_or(ONE).min(ONE)
        }
        _ => 0,
    }
}

/// Which vectors can be compared: those of one model and one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// As the provider names it.
    pub model: String,
    /// Numbers of a vector.
    pub dimensions: usize,
}

impl Space {
    /// The cache file that keeps its vectors.
    #[must_use]
    pub fn file(&self) -> String {
        let digest = Digest::of(format!("{}\n{}", self.dimensions, self.model).as_bytes());
        format!("{VECTORS}/{}", digest.hex_prefix(16))
    }
}

/// The vectors of one space.
#[derive(Clone, Debug)]
pub struct Vectors {
    space: Space,
    numbers: Vec<i8>,
    /// Places in `numbers`, in vectors.
    texts: BTreeMap<Key, usize>,
    documents: BTreeMap<Key, Key>,
    /// What the file does not have yet.
    new: Entries,
    /// Length of the file, and the check of its last block. None: it has to be written whole.
    file: Option<(u64, Check)>,
}

/// Keys of vectors, and documents, each with its text.
#[derive(Clone, Debug, Default)]
struct Entries {
    texts: Vec<Key>,
    documents: Vec<(Key, Key)>,
}

impl Vectors {
    /// Of what the cache has under [`Space::file`]. What of it is sound and of this space counts.
    #[must_use]
    pub fn open(space: Space, file: Option<&[u8]>) -> Vectors {
        let mut vectors = Vectors {
            space,
            numbers: Vec::new(),
            texts: BTreeMap::new(),
            documents: BTreeMap::new(),
            new: Entries::default(),
            file: None,
        };
        if let Some(file) = file {
            vectors.file = vectors.take(file);
        }
        vectors
    }

    /// Which ones these are.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The length of the file that all this came from or was written to; none: there is no such file.
    #[must_use]
    pub fn file_bytes(&self) -> Option<u64> {
        self.file.map(|(length, _)| length)
    }

    /// Takes in what a file has. None: not all of it is sound, or it is another's.
    fn take(&mut self, file: &[u8]) -> Option<(u64, Check)> {
        let header = self.header()?;
        let mut rest = Reader(file.strip_prefix(&*header)?);
        let mut last = check(&[&header]);
        while !rest.0.is_empty() {
            let length = rest.array::<4>()?;
            let payload = rest.take(usize::try_from(u32::from_le_bytes(length)).ok()?)?;
            let sum = check(&[&last, &length, payload]);
            if rest.array::<8>()? != sum {
                return None;
            }
            self.take_block(payload)?;
            last = sum;
        }
        Some((file.len() as u64, last))
    }

    fn take_block(&mut self, payload: &[u8]) -> Option<()> {
        let mut payload = Reader(payload);
        for _ in 0..payload.number::<4>()? {
            let key = Key(payload.array()?);
            let numbers = payload.take(self.space.dimensions)?;
            self.put(key, numbers.iter().map(|byte| i8::from_le_bytes([*byte])));
        }
        for _ in 0..payload.number::<4>()? {
            let (document, text) = (Key(payload.array()?), Key(payload.array()?));
            self.documents.insert(document, text);
        }
        payload.end()
    }

    /// False: it is there already.
    fn put(&mut self, text: Key, numbers: impl Iterator<Item = i8>) -> bool {
        if self.texts.contains_key(&text) {
            return false;
        }
        self.texts.insert(text, self.texts.len());
        self.numbers.extend(numbers);
        true
    }

    fn header(&self) -> Option<Vec<u8>> {
        let mut header = MAGIC.to_vec();
        put_number::<4>(&mut header, u64::from(VERSION))?;
        put_number::<4>(&mut header, self.space.dimensions as u64)?;
        put_text::<4>(&mut header, &self.space.model)?;
        let sum = check(&[&header]);
        header.extend_from_slice(&sum);
        Some(header)
    }

    /// Which text a document has, as far as that is known.
    #[must_use]
    pub fn text_of(&self, document: Key) -> Option<Key> {
        self.documents.get(&document).copied()
    }

    /// Whether nothing has to be embedded for a text.
    #[must_use]
    pub fn has(&self, text: Key) -> bool {
        text == Key::BLANK || self.texts.contains_key(&text)
    }

    /// What a text has in common with a vector: [`Vector::cosine`]. 0 if it has none.
    #[must_use]
    pub fn cosine(&self, text: Key, with: &Vector) -> u64 {
        self.numbers_of(text).map_or(0, |numbers| cosine(numbers, &with.0))
    }

    fn numbers_of(&self, text: Key) -> Option<&[i8]> {
        let from = self.texts.get(&text)?.checked_mul(self.space.dimensions)?;
        self.numbers.get(from..from.checked_add(self.space.dimensions)?)
    }

    /// Keeps the vector of a text. False: it is of another length.
    pub fn add(&mut self, text: Key, vector: &Vector) -> bool {
        if vector.dimensions() != self.space.dimensions {
            return false;
        }
        if self.put(text, vector.0.iter().copied()) {
            self.new.texts.push(text);
        }
        true
    }

    /// Keeps that a document has a text.
    pub fn note(&mut self, document: Key, text: Key) {
        if self.documents.insert(document, text) != Some(text) {
            self.new.documents.push((document, text));
        }
    }

    /// How many documents it says something about.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// How many of them are none of these.
    #[must_use]
    pub fn gone(&self, live: &BTreeSet<Key>) -> usize {
        self.documents.keys().filter(|document| !live.contains(document)).count()
    }

    /// Bytes that a file of all this takes, or a few less.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let texts = (self.texts.len() as u64).saturating_mul(TEXT_BYTES.saturating_add(self.space.dimensions as u64));
        let notes = (self.documents.len() as u64).saturating_mul(NOTE_BYTES);
        let known = self.header().map_or(0, |header| header.len() as u64).saturating_add(texts).saturating_add(notes);
        known.max(self.file_bytes().unwrap_or(0))
    }

    /// How many more texts, each of one document, fit into a file of so many bytes.
    #[must_use]
    pub fn room(&self, bytes: u64) -> u64 {
        let each = TEXT_BYTES.saturating_add(NOTE_BYTES).saturating_add(self.space.dimensions as u64);
        bytes.saturating_sub(self.bytes()).saturating_sub(BLOCK_BYTES) / each
    }

    /// Lets go of everything but these documents and what they say. The file is written whole then.
    pub fn keep_only(&mut self, documents: &BTreeSet<Key>) {
        let before = core::mem::replace(self, Vectors::open(self.space.clone(), None));
        for (document, text) in before.documents.iter().filter(|(document, _)| documents.contains(document)) {
            self.documents.insert(*document, *text);
            if let Some(numbers) = before.numbers_of(*text) {
                self.put(*text, numbers.iter().copied());
            }
        }
    }

    /// Takes in what others of this space have.
    pub fn take_in(&mut self, other: &Vectors) {
        if other.space != self.space {
            return;
        }
        for text in other.texts.keys() {
            if let Some(numbers) = other.numbers_of(*text) {
                self.add(*text, &Vector(numbers.into()));
            }
        }
        for (document, text) in &other.documents {
            self.note(*document, *text);
        }
    }

    /// What has to be written so that the file has everything; none: it does, or there is nothing.
    #[must_use]
    pub fn save(&self) -> Option<Write> {
        let name = self.space.file();
        match self.file {
            Some(_) if self.new.texts.is_empty() && self.new.documents.is_empty() => None,
            Some((length, last)) => {
                let (bytes, _) = self.block(&self.new, last)?;
                Some(Write::Append { name, length, bytes })
            }
            None if self.texts.is_empty() && self.documents.is_empty() => None,
            None => Some(Write::Put { name, bytes: self.whole()?.0 }),
        }
    }

    /// What [`Vectors::save`] said has been done.
    pub fn saved(&mut self) {
        self.file = match self.file {
            Some((length, last)) => self
                .block(&self.new, last)
                .map(|(bytes, sum)| (length.saturating_add(bytes.len() as u64), sum))
                .filter(|_| !(self.new.texts.is_empty() && self.new.documents.is_empty()))
                .or(self.file),
            None => self.whole().map(|(bytes, sum)| (bytes.len() as u64, sum)),
        };
        self.new = Entries::default();
    }

    fn whole(&self) -> Option<(Vec<u8>, Check)> {
        let mut bytes = self.header()?;
        let all = Entries {
            texts: self.texts.keys().copied().collect(),
            documents: self.documents.iter().map(|(document, text)| (*document, *text)).collect(),
        };
        let (block, sum) = self.block(&all, check(&[&bytes]))?;
        bytes.extend_from_slice(&block);
        Some((bytes, sum))
    }

    /// A block, and its check, which is over the one before it, too.
    fn block(&self, entries: &Entries, last: Check) -> Option<(Vec<u8>, Check)> {
        let mut payload = Vec::new();
        put_number::<4>(&mut payload, entries.texts.len() as u64)?;
        for text in &entries.texts {
            payload.extend_from_slice(&text.0);
            payload.extend(self.numbers_of(*text)?.iter().flat_map(|number| number.to_le_bytes()));
        }
        put_number::<4>(&mut payload, entries.documents.len() as u64)?;
        for (document, text) in &entries.documents {
            payload.extend_from_slice(&document.0);
            payload.extend_from_slice(&text.0);
        }
        let mut block = Vec::new();
        put_number::<4>(&mut block, payload.len() as u64)?;
        let sum = check(&[&last, &block, &payload]);
        block.extend_from_slice(&payload);
        block.extend_from_slice(&sum);
        Some((block, sum))
    }
}

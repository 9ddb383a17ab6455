//! What is asked, checked.
//!
//! A [`Query`] exists only through [`Query::parse`]: every argument makes sense, and there is at least one term to look
//! for. Knows words and days; must not know the index.

use super::analysis::{Analyzer, Found};
use super::document::Kind;
use super::fold::fold_name;
use super::stem::stems;
use super::words::{Languages, is_function_character, is_hiragana, nature};
use crate::ids::{Period, PeriodError};
use crate::text::identity_part;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Most distinct terms of one query that are looked at, in order of appearance; further ones are left out.
pub const QUERY_TERMS: usize = 4096;

/// What a caller may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most hits of one answer: the setting `search.top-k-max`.
    pub top_k_max: u32,
    /// Longest query text in bytes: the setting `limits.query-bytes`.
    pub query_bytes: u64,
}

/// A query as it came.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryRequest<'a> {
    /// Words to look for.
    pub text: &'a str,
    /// At most this many hits.
    pub top_k: u32,
    /// Only documents of this kind; none: any.
    pub scope: Option<Kind>,
    /// Id, name or label of a speaker. Empty is as good as none.
    pub speaker: Option<&'a str>,
    /// A file, or a directory; `.md` may be left off. Without `sources` or `topics` in front it is below `topics`. Empty
    /// is as good as none.
    pub path_prefix: Option<&'a str>,
    /// First day: `YYYY`, `YYYY-MM` or `YYYY-MM-DD`.
    pub from: Option<&'a str>,
    /// Last day, the same way, included.
    pub to: Option<&'a str>,
    /// Say how each score came about.
    pub explain: bool,
    /// By what documents are found.
    pub method: Method,
}

/// By what documents are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// By their words.
    #[default]
    Words,
    /// By what they mean, as a model that embeds texts has it.
    Embedding,
    /// By both.
    Hybrid,
}

/// Why nothing is found by what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EmbeddingUnavailable {
    /// The host has no such model.
    #[error("there is no model here that embeds texts; set one, or search by words")]
    NoModel,
}

impl EmbeddingUnavailable {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        "EMBEDDING_UNAVAILABLE"
    }

    /// The stable, kebab-case word.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoModel => "no-embedding-model",
        }
    }
}

/// Why a query makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// Nothing in the text is a letter or a digit.
    #[error("the query has no word to look for; give at least one letter or digit")]
    NothingSearchable,
    /// Every word of the text is one like `the`, `of` or `who`.
    #[error("the query has only words that are in every text, such as `the` and `who`; add what it is about")]
    OnlyFunctionWords,
    /// Longer than the limit.
    #[error("the query has {bytes} bytes and at most {allowed} are taken; shorten it")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The limit.
        allowed: u64,
    },
    /// No hits asked for, or more than the limit.
    #[error("{asked} hits were asked for; ask for 1 to {allowed}")]
    TopKOutOfRange {
        /// As asked.
        asked: u32,
        /// The limit.
        allowed: u32,
    },
    /// The days make no sense.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// A speaker filter goes with words only.
    #[error("a speaker is found by words only; leave the speaker out, or search by words")]
    SpeakerWithEmbedding,
    /// The speaker is blank, but not empty.
    #[error("the speaker is blank; give an id, a name or a label, or none")]
    BlankSpeaker,
}

impl QueryError {
    /// The error's stable name, listed in FORMAT.md.
    pub fn reason(&self) -> &'static str {
        match self {
            QueryError::NothingSearchable => "nothing-searchable",
            QueryError::OnlyFunctionWords => "only-function-words",
            QueryError::TooLong { .. } => "query-too-long",
            QueryError::TopKOutOfRange { .. } => "top-k-out-of-range",
            QueryError::Period(error) => error.reason(),
            QueryError::SpeakerWithEmbedding => "speaker-with-embedding",
            QueryError::BlankSpeaker => "blank-speaker",
        }
    }
}

/// A query that can be answered.
#[derive(Clone, Debug)]
pub struct Query {
    pub(super) terms: Vec<QueryTerm>,
    /// Its words and pairs as they stand there, for names.
    words: BTreeSet<Box<str>>,
    pub(super) asks_when: bool,
    pub(super) asks_number: bool,
    pub(super) recalls: bool,
    /// See [`Cues::asks_all`](super::analysis::Cues).
    pub(super) asks_all: bool,
    pub(super) terms_left_out: bool,
    pub(super) top_k: usize,
    pub(super) scope: Option<Kind>,
    pub(super) speaker: Option<SpeakerFilter>,
    pub(super) path: Option<PathFilter>,
    /// A document without a day lies in none.
    pub(super) period: Option<Period>,
    pub(super) explain: bool,
    method: Method,
}

/// Something to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryTerm {
    /// As it stands in the query, folded.
    pub(super) text: Box<str>,
    /// What it may be in the index, with the languages it is that in.
    pub(super) forms: Vec<(Languages, Box<str>)>,
    /// What it says of what is looked for.
    pub(super) says: Says,
    /// It is a word, and the term before it stands directly before it.
    pub(super) follows: bool,
}

/// How much a term says of what is looked for; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Says {
    /// Little: in a script without spaces, a single character, or a pair with one of grammar.
    Little,
    /// What is to be done with it: a word of asking.
    Asking,
    /// What it is.
    What,
}

impl Query {
    /// Checks a request against the rules above and `limits`.
    pub fn parse(request: &QueryRequest<'_>, limits: &Limits) -> Result<Query, QueryError> {
        if request.top_k == 0 || request.top_k > limits.top_k_max {
            return Err(QueryError::TopKOutOfRange { asked: request.top_k, allowed: limits.top_k_max });
        }
        let bytes = request.text.len() as u64;
        if bytes > limits.query_bytes {
            return Err(QueryError::TooLong { bytes, allowed: limits.query_bytes });
        }
        let is_dated = request.from.is_some() || request.to.is_some();
        let period = is_dated.then(|| Period::parse(request.from, request.to)).transpose()?;
        let speaker = request.speaker.filter(|name| !name.is_empty()).map(SpeakerFilter::parse).transpose()?;
        if speaker.is_some() && request.method != Method::Words {
            return Err(QueryError::SpeakerWithEmbedding);
        }
        let mut terms = Terms::default();
        let cues = Analyzer::default().analyse(request.text, |found| terms.add(found));
        if terms.terms.is_empty() {
            return Err(match cues.function_words {
                true => QueryError::OnlyFunctionWords,
                false => QueryError::NothingSearchable,
            });
        }
        Ok(Query {
            words: terms.words,
            terms: terms.terms,
            asks_when: cues.asks_when,
            asks_number: cues.asks_number,
            asks_all: cues.asks_all,
            recalls: cues.recalls,
            terms_left_out: terms.left_out,
            top_k: request.top_k as usize,
            scope: request.scope,
            speaker,
            path: request.path_prefix.and_then(PathFilter::parse),
            period,
            explain: request.explain,
            method: request.method,
        })
    }

    /// By what it is to be answered. [`Index::search`](super::Index::search) knows words only.
    pub fn method(&self) -> Method {
        self.method
    }

    /// How many hits it asks for.
    pub fn top_k(&self) -> u32 {
        u32::try_from(self.top_k).unwrap_or(u32::MAX)
    }

    /// Whether scores are to be explained.
    pub fn explain(&self) -> bool {
        self.explain
    }

    /// The same query for so many hits, at least one.
    #[must_use]
    pub fn with_top_k(mut self, top_k: u32) -> Query {
        self.top_k = top_k.max(1) as usize;
        self
    }

    /// What of it may be somebody's name.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }
}

/// The terms of a query, each once, in order of appearance.
#[derive(Default)]
struct Terms {
    terms: Vec<QueryTerm>,
    /// Which term has a form.
    owners: BTreeMap<Box<str>, usize>,
    words: BTreeSet<Box<str>>,
    /// The word that made the last term, by its place.
    last_new: Option<u32>,
    left_out: bool,
}

impl Terms {
    fn add(&mut self, found: Found<'_>) {
        match found {
            Found::Word { word, place, language } => {
                let follows = self.last_new.is_some_and(|last| last.checked_add(1) == Some(place));
                let asks = nature(word).asking & language.bit() != 0;
                let says = if asks { Says::Asking } else { Says::What };
                if self.term(word, stems(word), says, follows) {
                    self.last_new = Some(place);
                }
                self.keep_word(word);
            }
            Found::Pair(pair) => {
                let says = if pair.chars().any(is_function_character) || pair.chars().all(is_hiragana) {
                    Says::Little
                } else if nature(pair).asking != 0 {
                    Says::Asking
                } else {
                    Says::What
                };
                self.unspaced(pair, says);
                self.keep_word(pair);
            }
            Found::Unit { character, alone } => {
                let says = if alone { Says::What } else { Says::Little };
                self.unspaced(character.encode_utf8(&mut [0; 4]), says);
            }
        }
    }

    fn unspaced(&mut self, text: &str, says: Says) {
        self.last_new = None;
        self.term(text, vec![(Languages::MAX, text.into())], says, false);
    }

    /// True: it is a new term.
    fn term(&mut self, text: &str, mut forms: Vec<(Languages, Box<str>)>, says: Says, follows: bool) -> bool {
        let owner = forms.first().and_then(|(_, first)| self.owners.get(first)).copied();
        // What another term finds already would count twice.
        forms.retain(|(_, form)| !self.owners.contains_key(form));
        let number = owner.unwrap_or(self.terms.len());
        if number == QUERY_TERMS {
            self.left_out = true;
            return false;
        }
        for (_, form) in &forms {
            self.owners.insert(form.clone(), number);
        }
        match self.terms.get_mut(number) {
            Some(term) => {
                term.says = term.says.max(says);
                term.forms.append(&mut forms);
            }
            None => self.terms.push(QueryTerm { text: text.into(), forms, says, follows }),
        }
        owner.is_none()
    }

    fn keep_word(&mut self, word: &str) {
        if self.words.len() < QUERY_TERMS {
            self.words.insert(word.into());
        }
    }
}

/// The forms of a name that a speaker may have.
#[derive(Clone, Debug)]
pub(super) struct SpeakerFilter {
    as_given: String,
    as_written: String,
}

impl SpeakerFilter {
    fn parse(name: &str) -> Result<SpeakerFilter, QueryError> {
        let filter = SpeakerFilter { as_given: fold_name(name), as_written: fold_name(&identity_part(name)) };
        if filter.as_given.is_empty() { Err(QueryError::BlankSpeaker) } else { Ok(filter) }
    }

    /// Whether a speaker goes by this name, which [`fold_name`] made.
    pub(super) fn matches(&self, name: &str) -> bool {
        !name.is_empty() && (name == self.as_given || name == self.as_written)
    }
}

/// A file or directory below which a document must lie.
#[derive(Clone, Debug)]
pub(super) struct PathFilter {
    prefix: String,
}

impl PathFilter {
    fn parse(given: &str) -> Option<PathFilter> {
        let trimmed = given.trim_matches(|c: char| c == '/' || c.is_whitespace());
        let first = trimmed.split('/').next().filter(|first| !first.is_empty())?;
        let prefix = match first {
            "sources" | "topics" => trimmed.to_owned(),
            _ => format!("topics/{trimmed}"),
        };
        Some(PathFilter { prefix })
    }

    /// Whether a path lies there: it is the file, with or without `.md`, or is below the directory. A v2 archive counts
    /// under its own path and under the one without `_v2`.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.covers(path) || logical(path).is_some_and(|path| self.covers(&path))
    }

    fn covers(&self, path: &str) -> bool {
        match path.strip_prefix(self.prefix.as_str()) {
            Some(rest) => rest.is_empty() || rest.starts_with('/') || rest == ".md",
            None => false,
        }
    }
}

/// The path of a v2 archive without `_v2`: `sources/P/_v2/T.md` is `sources/P/T.md`. None for any other path.
fn logical(path: &str) -> Option<String> {
    let (directory, file) = path.rsplit_once('/')?;
    let parent = directory.strip_suffix("/_v2")?;
    parent.starts_with("sources/").then(|| format!("{parent}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { top_k_max: 10, query_bytes: 1 << 20 };

    fn request(text: &str) -> QueryRequest<'_> {
        QueryRequest { text, top_k: 5, ..QueryRequest::default() }
    }

    fn parse(text: &str) -> Query {
        Query::parse(&request(text), &LIMITS).unwrap()
    }

    /// Its terms, those that say little in parentheses, those of asking with a question mark, those that stand behind the
    /// one before with a plus.
    fn terms_of(text: &str) -> Vec<String> {
        let shown = |term: &QueryTerm| {
            let text = match term.says {
                Says::Little => format!("({})", term.text),
                Says::Asking => format!("{}?", term.text),
                Says::What => term.text.to_string(),
            };
            if term.follows { format!("+{text}") } else { text }
        };
        parse(text).terms.iter().map(shown).collect()
    }

    fn reason(request: &QueryRequest<'_>) -> &'static str {
        Query::parse(request, &LIMITS).unwrap_err().reason()
    }

    #[test]
    fn terms_count_once_and_function_words_not_at_all() {
        assert_eq!(terms_of("The budget, the BUDGET of Ada's launch"), ["budget", "ada", "+launch"]);
        assert_eq!(terms_of("went houses going House"), ["went", "+houses"]);
        assert_eq!(terms_of("预算很大 猫"), ["(预)", "(算)", "预算", "(算很)", "(大)", "(很大)", "猫"]);
        assert_eq!(terms_of("食べる"), ["(食)", "(べ)", "食べ", "(る)", "(べる)"]);
    }

    #[test]
    fn side_by_side_is_what_no_other_word_parts() {
        assert_eq!(terms_of("dog food for dog bowls"), ["dog", "+food", "bowls"]);
        assert_eq!(terms_of("dog 猫 food"), ["猫", "dog", "food"]);
    }

    #[test]
    fn words_of_asking_are_known_in_the_language_of_the_query() {
        assert_eq!(terms_of("Can you summarise what I said about the budget?"), ["summarise?", "+said?", "+budget"]);
        assert_eq!(terms_of("Was hat er über die Art und das Haus gesagt?"), ["art?", "+haus", "+gesagt?"]);
        assert_eq!(terms_of("the art of the house"), ["art", "+house"]);
        assert_eq!(terms_of("关于预算"), ["(关)", "(于)", "关于?", "(预)", "于预", "(算)", "预算"]);
        // A word of asking and one with its stem: what is looked for may well be the latter.
        assert_eq!(terms_of("say sayings"), ["say"]);
    }

    #[test]
    fn a_term_has_its_forms_in_every_language_and_none_is_anothers() {
        let query = parse("häuser haus");
        let forms: Vec<&str> = query.terms.iter().flat_map(|term| &term.forms).map(|(_, form)| &**form).collect();
        let different: BTreeSet<&str> = forms.iter().copied().collect();
        assert!(different.contains("haus") && different.len() == forms.len(), "{forms:?}");
    }

    #[test]
    fn a_query_without_a_term_is_refused() {
        for text in ["", " \n", "?!…", "😀", "\u{301}", "\u{200d}\u{feff}", "'", "--"] {
            assert_eq!(reason(&request(text)), "nothing-searchable", "{text:?}");
        }
        for text in ["the", "who are you? You!", "的", "der die das", "it's the"] {
            assert_eq!(reason(&request(text)), "only-function-words", "{text:?}");
        }
    }

    #[test]
    fn asking_when_is_noticed() {
        assert!(parse("When was the launch?").asks_when && !parse("the launch").asks_when);
    }

    #[test]
    fn hits_asked_for_and_length_have_limits() {
        assert_eq!(reason(&QueryRequest { top_k: 0, ..request("x") }), "top-k-out-of-range");
        assert_eq!(reason(&QueryRequest { top_k: 11, ..request("x") }), "top-k-out-of-range");
        assert!(Query::parse(&QueryRequest { top_k: 10, ..request("x") }, &LIMITS).is_ok());
        assert!(Query::parse(&request(&"x".repeat(1 << 20)), &LIMITS).is_ok());
        assert_eq!(reason(&request(&"x".repeat((1 << 20) + 1))), "query-too-long");
    }

    #[test]
    fn too_many_terms_are_left_out_and_told() {
        let text: String = (0..QUERY_TERMS + 1).map(|n| format!("w{n} ")).collect();
        let query = Query::parse(&request(&text), &LIMITS).unwrap();
        assert!(query.terms_left_out);
        assert_eq!(query.terms.len(), QUERY_TERMS);
        let again = format!("{} w0", text.replace(&format!("w{QUERY_TERMS} "), ""));
        assert!(!Query::parse(&request(&again), &LIMITS).unwrap().terms_left_out);
    }

    #[test]
    fn dates_are_checked() {
        let dates = |from, to| QueryRequest { from, to, ..request("x") };
        assert_eq!(reason(&dates(Some("2024-13"), Some("x"))), "invalid-date-from");
        assert_eq!(reason(&dates(None, Some("0000"))), "invalid-date-to");
        assert_eq!(reason(&dates(Some(""), None)), "invalid-date-from");
        assert_eq!(reason(&dates(Some("2024-02"), Some("2024-01"))), "date-range-reversed");
        assert!(Query::parse(&dates(Some("2024-02-10"), Some("2024-02")), &LIMITS).is_ok());
        assert!(Query::parse(&dates(Some(" 0001 "), Some("9999")), &LIMITS).is_ok());
        let error = Query::parse(&dates(Some("so\u{7}on"), None), &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), r"`so\u{7}on` is no date to begin with; write YYYY, YYYY-MM or YYYY-MM-DD");
    }

    #[test]
    fn a_blank_speaker_is_refused_and_an_empty_one_is_none() {
        assert_eq!(reason(&QueryRequest { speaker: Some(" \t"), ..request("x") }), "blank-speaker");
        assert_eq!(reason(&QueryRequest { speaker: Some("\u{a0}"), ..request("x") }), "blank-speaker");
        assert!(Query::parse(&QueryRequest { speaker: Some(""), ..request("x") }, &LIMITS).unwrap().speaker.is_none());
    }

    #[test]
    fn a_speaker_goes_with_words_only() {
        let by = |method| QueryRequest { speaker: Some("Ada"), method, ..request("x") };
        assert_eq!(reason(&by(Method::Embedding)), "speaker-with-embedding");
        assert_eq!(reason(&by(Method::Hybrid)), "speaker-with-embedding");
        assert_eq!(Query::parse(&by(Method::Words), &LIMITS).unwrap().method(), Method::Words);
        assert!(Query::parse(&QueryRequest { method: Method::Hybrid, ..request("x") }, &LIMITS).is_ok());
    }

    #[test]
    fn speakers_match_as_given_and_as_written() {
        let matches = |given: &str, name: &str| SpeakerFilter::parse(given).unwrap().matches(&fold_name(name));
        assert!(matches("  ADA  (7391) ", "Ada (7391)"));
        assert!(matches("ada [7391]", "Ada (7391)"));
        assert!(matches("team: red", "Team： Red"));
        assert!(matches("Jose\u{301}", "JOSÉ"));
        let long = "x".repeat(70);
        assert!(matches(&long, &identity_part(&long)));
        assert!(!matches("Ada", "Adam") && !matches("Adam", "Ada") && !matches("Ada", ""));
    }

    #[test]
    fn paths_match_by_whole_components() {
        let matches = |given: &str, path: &str| PathFilter::parse(given).unwrap().matches(path);
        let v2 = "sources/openprogram/_v2/g1.md";
        for given in [
            "sources",
            "/sources/",
            " sources/openprogram ",
            "sources/openprogram/_v2",
            "sources/openprogram/_v2/g1.md",
            "sources/openprogram/_v2/g1",
            "sources/openprogram/g1.md",
            "sources/openprogram/g1",
            "/sources/openprogram/g1/",
        ] {
            assert!(matches(given, v2), "{given}");
        }
        for given in [
            "source",
            "sources/open",
            "sources/openprogram/g",
            "sources/openprogram/_v2/g1.m",
            "openprogram",
            "topics",
            "sources/openprogram/g1.md/x",
            "sources//openprogram",
            "Sources",
        ] {
            assert!(!matches(given, v2), "{given}");
        }
        assert!(matches("people", "topics/people/ada.md") && matches("topics/people/ada", "topics/people/ada.md"));
        assert!(!matches("sources/_v2.md", "sources/p/_v2.md"));
        assert!(PathFilter::parse(" / ").is_none() && PathFilter::parse("").is_none());
    }
}

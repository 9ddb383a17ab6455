//! What is asked, checked.
//!
//! A [`Query`] exists only through [`Query::parse`]: every argument makes sense, and there is at least one term to look
//! for. Knows tokens and days; must not know the index.

use super::document::Kind;
use super::fold::fold_name;
use super::token::{Token, Tokenizer};
use super::words::is_function_word;
use crate::ids::{Day, Span};
use crate::text::{excerpt, identity_part};
use std::collections::BTreeSet;
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
}

/// Why a query makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QueryError {
    /// Nothing in the text is a letter or a digit.
    #[error("the query has no word to look for; give at least one letter or digit")]
    NothingSearchable,
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
    /// The first day is none.
    #[error("invalid date_from: {value}; write YYYY, YYYY-MM or YYYY-MM-DD")]
    InvalidDateFrom {
        /// As given, escaped and cut.
        value: String,
    },
    /// The last day is none.
    #[error("invalid date_to: {value}; write YYYY, YYYY-MM or YYYY-MM-DD")]
    InvalidDateTo {
        /// As given, escaped and cut.
        value: String,
    },
    /// The first day is after the last.
    #[error("date_from must not be after date_to; exchange them")]
    DateRangeReversed,
    /// The speaker is blank, but not empty.
    #[error("the speaker is blank; give an id, a name or a label, or none")]
    BlankSpeaker,
}

impl QueryError {
    /// The error's stable name, listed in FORMAT.md.
    pub fn reason(&self) -> &'static str {
        match self {
            QueryError::NothingSearchable => "nothing-searchable",
            QueryError::TooLong { .. } => "query-too-long",
            QueryError::TopKOutOfRange { .. } => "top-k-out-of-range",
            QueryError::InvalidDateFrom { .. } => "invalid-date-from",
            QueryError::InvalidDateTo { .. } => "invalid-date-to",
            QueryError::DateRangeReversed => "date-range-reversed",
            QueryError::BlankSpeaker => "blank-speaker",
        }
    }
}

/// A query that can be answered.
#[derive(Clone, Debug)]
pub struct Query {
    pub(super) terms: Vec<QueryTerm>,
    /// Those of them that are looked up as they are, for [`Query::names`].
    words: BTreeSet<Box<str>>,
    pub(super) terms_left_out: bool,
    pub(super) top_k: usize,
    pub(super) scope: Option<Kind>,
    pub(super) speaker: Option<SpeakerFilter>,
    pub(super) path: Option<PathFilter>,
    pub(super) dates: Option<DateFilter>,
    pub(super) explain: bool,
}

/// A term to look up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueryTerm {
    /// This very term.
    Exact(Box<str>),
    /// Every term that begins with this unit: together, the documents that contain it.
    Containing(Box<str>),
}

impl QueryTerm {
    /// The term as shown to people.
    pub(super) fn text(&self) -> &str {
        match self {
            QueryTerm::Exact(text) | QueryTerm::Containing(text) => text,
        }
    }
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
        let dates = DateFilter::parse(request.from, request.to)?;
        let speaker = request.speaker.filter(|name| !name.is_empty()).map(SpeakerFilter::parse).transpose()?;
        let (terms, terms_left_out) = terms(request.text);
        if terms.is_empty() {
            return Err(QueryError::NothingSearchable);
        }
        let words = terms.iter().filter_map(|term| match term {
            QueryTerm::Exact(word) => Some(word.clone()),
            QueryTerm::Containing(_) => None,
        });
        Ok(Query {
            words: words.collect(),
            terms,
            terms_left_out,
            top_k: request.top_k as usize,
            scope: request.scope,
            speaker,
            path: request.path_prefix.and_then(PathFilter::parse),
            dates,
            explain: request.explain,
        })
    }

    /// Whether a word of a speaker's name is among the words looked for.
    pub(super) fn names(&self, word: &str) -> bool {
        self.words.contains(word)
    }
}

/// The distinct terms of a query in order of appearance, and whether some were left out for their number. Function words
/// are terms only where there is nothing else.
fn terms(text: &str) -> (Vec<QueryTerm>, bool) {
    let (mut seen, mut terms, mut function_words, mut left_out) = (BTreeSet::new(), Vec::new(), Vec::new(), false);
    Tokenizer::default().tokenize(text, |token| {
        let (term, terms) = match token {
            Token::Word(word) if is_function_word(word) => (QueryTerm::Exact(word.into()), &mut function_words),
            Token::Word(term) | Token::Pair(term) => (QueryTerm::Exact(term.into()), &mut terms),
            Token::Single(unit) => (QueryTerm::Containing(unit.into()), &mut terms),
            Token::Last(_) => return,
        };
        if seen.contains(&term) {
            return;
        }
        if terms.len() == QUERY_TERMS {
            left_out = true;
            return;
        }
        terms.push(term.clone());
        seen.insert(term);
    });
    (if terms.is_empty() { function_words } else { terms }, left_out)
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

/// Days between which a document's must lie, at least in part.
#[derive(Clone, Copy, Debug)]
pub(super) struct DateFilter {
    from: Option<Day>,
    to: Option<Day>,
}

impl DateFilter {
    fn parse(from: Option<&str>, to: Option<&str>) -> Result<Option<DateFilter>, QueryError> {
        let span =
            |given: Option<&str>| given.map(|text| Span::parse(text.trim()).ok_or_else(|| excerpt(text.as_bytes())));
        let from = span(from).transpose().map_err(|value| QueryError::InvalidDateFrom { value })?.map(Span::first);
        let to = span(to).transpose().map_err(|value| QueryError::InvalidDateTo { value })?.map(Span::last);
        match (from, to) {
            (None, None) => Ok(None),
            (Some(from), Some(to)) if from > to => Err(QueryError::DateRangeReversed),
            (from, to) => Ok(Some(DateFilter { from, to })),
        }
    }

    /// Whether a document's days meet these. One without a day does not.
    pub(super) fn matches(&self, days: Option<Span>) -> bool {
        days.is_some_and(|days| {
            self.from.is_none_or(|from| from <= days.last()) && self.to.is_none_or(|to| days.first() <= to)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { top_k_max: 10, query_bytes: 1 << 20 };

    fn request(text: &str) -> QueryRequest<'_> {
        QueryRequest { text, top_k: 5, ..QueryRequest::default() }
    }

    fn terms_of(text: &str) -> Vec<String> {
        let query = Query::parse(&request(text), &LIMITS).unwrap();
        query.terms.iter().map(|term| term.text().to_owned()).collect()
    }

    fn reason(request: &QueryRequest<'_>) -> &'static str {
        Query::parse(request, &LIMITS).unwrap_err().reason()
    }

    #[test]
    fn terms_count_once_and_function_words_only_by_themselves() {
        assert_eq!(terms_of("The budget, the BUDGET of Ada's launch"), ["budget", "ada", "launch"]);
        assert_eq!(terms_of("who are you? You!"), ["who", "are", "you"]);
        assert_eq!(terms_of("预算很大 猫"), ["预算", "算很", "很大", "猫"]);
    }

    #[test]
    fn a_query_without_a_term_is_refused() {
        for text in ["", " \n", "?!…", "😀", "\u{301}", "\u{200d}\u{feff}", "'", "--"] {
            assert_eq!(reason(&request(text)), "nothing-searchable", "{text:?}");
        }
    }

    #[test]
    fn hits_asked_for_and_length_have_limits() {
        assert_eq!(reason(&QueryRequest { top_k: 0, ..request("a") }), "top-k-out-of-range");
        assert_eq!(reason(&QueryRequest { top_k: 11, ..request("a") }), "top-k-out-of-range");
        assert!(Query::parse(&QueryRequest { top_k: 10, ..request("a") }, &LIMITS).is_ok());
        assert!(Query::parse(&request(&"a".repeat(1 << 20)), &LIMITS).is_ok());
        assert_eq!(reason(&request(&"a".repeat((1 << 20) + 1))), "query-too-long");
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
        let dates = |from, to| QueryRequest { from, to, ..request("a") };
        assert_eq!(reason(&dates(Some("2024-13"), Some("x"))), "invalid-date-from");
        assert_eq!(reason(&dates(None, Some("0000"))), "invalid-date-to");
        assert_eq!(reason(&dates(Some(""), None)), "invalid-date-from");
        assert_eq!(reason(&dates(Some("2024-02"), Some("2024-01"))), "date-range-reversed");
        assert!(Query::parse(&dates(Some("2024-02-10"), Some("2024-02")), &LIMITS).is_ok());
        assert!(Query::parse(&dates(Some(" 0001 "), Some("9999")), &LIMITS).is_ok());
        let error = Query::parse(&dates(Some("so\u{7}on"), None), &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), r"invalid date_from: so\u{7}on; write YYYY, YYYY-MM or YYYY-MM-DD");
    }

    #[test]
    fn date_filters_meet_spans() {
        let passes = |from, to, days: Option<&str>| {
            DateFilter::parse(from, to).unwrap().unwrap().matches(days.map(|days| Span::parse(days).unwrap()))
        };
        assert!(passes(Some("2024-02"), Some("2024-02"), Some("2024-02-29")));
        assert!(!passes(Some("2024-02"), Some("2024-02"), Some("2024-03-01")));
        assert!(passes(Some("2024-02-10"), None, Some("2024-02")));
        assert!(!passes(None, Some("2023"), Some("2024-01-01")));
        assert!(!passes(None, Some("9999"), None));
    }

    #[test]
    fn a_blank_speaker_is_refused_and_an_empty_one_is_none() {
        assert_eq!(reason(&QueryRequest { speaker: Some(" \t"), ..request("a") }), "blank-speaker");
        assert_eq!(reason(&QueryRequest { speaker: Some("\u{a0}"), ..request("a") }), "blank-speaker");
        assert!(Query::parse(&QueryRequest { speaker: Some(""), ..request("a") }, &LIMITS).unwrap().speaker.is_none());
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

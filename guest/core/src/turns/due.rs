//! Which sessions are looked at now, and what was already.
//!
//! Whoever is told that a conversation has stopped looks at once; whoever is not, when nothing was said for a while. A session
//! that was handled is not looked at again until it changes: after a success, and after a failure that another try cannot
//! help. Knows times as numbers and no clock.

use super::owed::TurnLimits;
use super::status::WriterFailure;
use crate::import::value::{document, entries, number};
use crate::source::Problem;
use crate::text::json_string;
use crate::trust::python_float;
use std::collections::BTreeMap;

/// A session as its store lists it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionState<'a> {
    /// Its id.
    pub id: &'a str,
    /// When something was last said, in seconds since 1970; marks do not count.
    pub updated_at: f64,
    /// Somebody said that it has stopped for now.
    pub told: bool,
}

/// Why a session is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Somebody said that it has stopped.
    Told,
    /// Nothing was said for long enough.
    Idle,
}

/// When each session was handled: the time of change that it had then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handled {
    at: BTreeMap<String, f64>,
}

/// The file is not what it should be. It is not taken for empty: everything would be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("session-end.json is no object of numbers; remove it to have every session looked at again")]
pub struct HandledError;

impl HandledError {
    /// The refusal of everything that depends on the file at `path`.
    #[must_use]
    pub fn problem(self, path: String) -> Problem {
        Problem {
            code: "INVALID_ARGUMENT",
            reason: "unreadable-handled",
            path: Some(path),
            line: None,
            subject: None,
            message: self.to_string(),
        }
    }
}

/// The sessions that are due, those that were told first, then those that have waited longest.
///
/// A time of change that lies in the future by more than the wait is a clock's fault, and counts as long ago.
#[must_use]
pub fn due<'a>(
    sessions: impl IntoIterator<Item = SessionState<'a>>,
    handled: &Handled,
    limits: &TurnLimits,
    now: f64,
) -> Vec<(SessionState<'a>, Due)> {
    let wait = limits.idle_s as f64;
    let why = |session: &SessionState<'a>| {
        if handled.is_handled(session.id, session.updated_at) {
            return None;
        }
        // What is no number compares with nothing, and is due.
        let is_fresh = (now - session.updated_at).abs() < wait;
        match (session.told, is_fresh) {
            (true, _) => Some(Due::Told),
            (false, true) => None,
            (false, false) => Some(Due::Idle),
        }
    };
    let mut due: Vec<_> = sessions.into_iter().filter_map(|session| Some((session, why(&session)?))).collect();
    due.sort_by(|(a, why_a), (b, why_b)| {
        let rank = |why: &Due| u8::from(*why == Due::Idle);
        rank(why_a).cmp(&rank(why_b)).then(a.updated_at.total_cmp(&b.updated_at)).then(a.id.cmp(b.id))
    });
    due
}

impl Handled {
    /// The file's path within the runtime directory.
    pub const PATH: &'static str = "session-end.json";

    /// Reads the file; a missing one is [`Handled::default`].
    ///
    /// # Errors
    /// [`HandledError`]: it is no object of numbers.
    pub fn parse(content: &str) -> Result<Self, HandledError> {
        let mut at = BTreeMap::new();
        let mut sound = true;
        let raw = document(content).ok_or(HandledError)?;
        entries(raw, &mut |id, time| {
            match number(time).filter(|time| time.is_finite()) {
                Some(time) => drop(at.insert(id.to_text(), time)),
                None => sound = false,
            }
            true
        })
        .filter(|()| sound)
        .ok_or(HandledError)?;
        Ok(Self { at })
    }

    /// The file's content.
    #[must_use]
    pub fn file(&self) -> String {
        let entries: Vec<String> =
            self.at.iter().map(|(id, at)| format!("\n  {}: {}", json_string(id), python_float(*at))).collect();
        if entries.is_empty() { "{}".to_owned() } else { format!("{{{}\n}}", entries.join(",")) }
    }

    /// Whether a session was handled as it is. Any other time of change, an earlier one too, says that it changed.
    #[must_use]
    pub fn is_handled(&self, id: &str, updated_at: f64) -> bool {
        self.at.get(id).is_some_and(|at| *at == updated_at)
    }

    /// Takes note of how a look at a session went that had this time of change before it. Whether that changed anything: a
    /// failure that another try can help is offered again.
    pub fn settle(&mut self, id: &str, updated_at: f64, outcome: Result<(), WriterFailure>) -> bool {
        let is_settled = outcome.err().is_none_or(|failure| !failure.retryable);
        if !is_settled || !updated_at.is_finite() {
            return false;
        }
        self.at.insert(id.to_owned(), updated_at) != Some(updated_at)
    }

    /// Forgets sessions that are no longer there. Whether there were any.
    pub fn retain(&mut self, is_there: &dyn Fn(&str) -> bool) -> bool {
        let before = self.at.len();
        self.at.retain(|id, _| is_there(id));
        self.at.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::super::status::{ModelFailure, WriterCode};
    use super::*;

    const NOW: f64 = 1_800_000_000.0;

    fn ids(sessions: &[(&'static str, f64, bool)], handled: &Handled) -> Vec<(&'static str, Due)> {
        let sessions =
            sessions.iter().map(|(id, updated_at, told)| SessionState { id, updated_at: *updated_at, told: *told });
        due(sessions, handled, &TurnLimits::default(), NOW)
            .into_iter()
            .map(|(session, why)| (session.id, why))
            .collect()
    }

    #[test]
    fn told_at_once_and_otherwise_when_idle() {
        let sessions = [
            ("talking", NOW - 60.0, false),
            ("idle", NOW - 1800.0, false),
            ("older", NOW - 9000.0, false),
            ("stopped", NOW - 1.0, true),
            ("future", NOW + 1e6, false),
            ("ahead", NOW + 5.0, false),
            ("nan", f64::NAN, false),
        ];
        assert_eq!(
            ids(&sessions, &Handled::default()),
            [
                ("stopped", Due::Told),
                ("older", Due::Idle),
                ("idle", Due::Idle),
                ("future", Due::Idle),
                ("nan", Due::Idle)
            ]
        );
    }

    #[test]
    fn what_was_handled_waits_for_a_change() {
        let mut handled = Handled::default();
        let at = NOW - 9000.0;
        assert!(handled.settle("s", at, Ok(())));
        assert!(!handled.settle("s", at, Ok(())));
        for told in [true, false] {
            assert_eq!(ids(&[("s", at, told)], &handled), []);
            assert_eq!(ids(&[("s", at + 0.5, told)], &handled).len(), 1);
            assert_eq!(ids(&[("s", at - 0.5, told)], &handled).len(), 1, "a clock that was put back hides nothing");
        }
    }

    #[test]
    fn a_failure_that_another_try_can_help_is_offered_again() {
        let mut handled = Handled::default();
        let at = NOW - 9000.0;
        assert!(!handled.settle("s", at, Err(WriterFailure::of_model(ModelFailure::RateLimit, true))));
        assert_eq!(ids(&[("s", at, false)], &handled), [("s", Due::Idle)]);
        let failure = WriterFailure { code: WriterCode::NoProgress, retryable: false };
        assert!(handled.settle("s", at, Err(failure)));
        assert_eq!(ids(&[("s", at, false)], &handled), []);
    }

    #[test]
    fn the_file() {
        let mut handled = Handled::default();
        assert_eq!(handled.file(), "{}");
        handled.settle("b \"", 1_700_000_000.25, Ok(()));
        handled.settle("a", 1_700_000_000.0, Ok(()));
        assert_eq!(handled.file(), "{\n  \"a\": 1700000000.0,\n  \"b \\\"\": 1700000000.25\n}");
        assert_eq!(Handled::parse(&handled.file()), Ok(handled.clone()));
        assert!(handled.retain(&|id| id == "a"));
        assert!(!handled.retain(&|id| id == "a"));
        for text in ["", "[]", "{\"a\":\"1\"}", "{\"a\":null}", "{\"a\":1", "{\"a\":1e999}"] {
            assert_eq!(Handled::parse(text), Err(HandledError), "{text}");
        }
    }
}

//! Looking for conversations that have stopped, and when the night's work is due.
//!
//! Which conversations are looked at is the component's to say (`due`). Knows a store and a clock. Must not wait: whoever calls does.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::store::{SessionStore, StoreFault};
use super::{Drive, DriveOptions, Ended, ListedConversation, Outcome};
use crate::error::Error;
use crate::observer::Level;
use crate::session::Session;

/// Failures that every other conversation would share: asking for each of them would ask a provider in vain, and those that another
/// try cannot help would all count as handled.
const OF_THE_PROVIDER: [&str; 6] = [
    "MEMORY_PROVIDER_RESOLUTION_FAILED",
    "MODEL_TRANSPORT",
    "MODEL_RATE_LIMIT",
    "MODEL_PROVIDER_INTERNAL",
    "MODEL_AUTHENTICATION",
    "MODEL_AUTHORIZATION",
];

/// Looks at the conversations of a store.
#[derive(Clone, Debug)]
pub struct Watch {
    /// How conversations are written that have stopped.
    pub options: DriveOptions,
}

/// What came of a look at all of them.
#[derive(Debug, Default)]
pub struct Round {
    /// Conversations that there are.
    pub conversations: u64,
    /// Those that were looked at.
    pub outcomes: Vec<Outcome>,
    /// Those that were due and wait for the next round, because the model failed of something that concerns them as well.
    pub put_off: u64,
    /// Conversations that could not even be listed.
    pub faults: Vec<StoreFault>,
    /// How it ended.
    pub ended: Ended,
}

/// Why there was no round.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The store cannot be listed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The component does not say what is due.
    #[error(transparent)]
    Session(#[from] Error),
}

impl Watch {
    /// One look: writes what is due, one conversation after the other. `told` hears of each.
    ///
    /// # Errors
    /// The store cannot be listed, or what was handled cannot be read. What is wrong with one conversation is its outcome.
    pub fn round(
        &self,
        session: &mut Session,
        store: &dyn SessionStore,
        workspace: Option<&Path>,
        stop: &dyn Fn() -> bool,
        told: &mut dyn FnMut(&Outcome),
    ) -> Result<Round, WatchError> {
        let listing = store.list()?;
        let mut round =
            Round { conversations: listing.conversations.len() as u64, faults: listing.faults, ..Round::default() };
        let observer = session.observer();
        for fault in &round.faults {
            observer.log(Level::Warn, &format!("a conversation is left out: {fault}"));
        }
        let listed: Vec<ListedConversation> = listing
            .conversations
            .iter()
            .map(|it| ListedConversation { id: it.id.clone(), updated_at: it.updated_at, told: it.told })
            .collect();
        let due = session.due(&listed)?;
        let mut rest = due.iter();
        for id in rest.by_ref() {
            if stop() {
                round.ended = Ended::Stopped;
                break;
            }
            let Some(of) = listing.conversations.iter().find(|it| it.id == *id) else { continue };
            let outcome = Drive::new(session, store, workspace).stop(stop).write(of, &self.options);
            told(&outcome);
            let ended = outcome.ended;
            let is_shared = outcome.failure.as_ref().is_some_and(|it| OF_THE_PROVIDER.contains(&&*it.code));
            round.outcomes.push(outcome);
            if ended == Ended::Stopped {
                round.ended = ended;
                break;
            }
            if is_shared {
                round.put_off = rest.len() as u64;
                break;
            }
        }
        Ok(round)
    }
}

/// A time of day at which something is done once a day.
#[derive(Clone, Debug)]
pub struct Nightly {
    at: Time,
    zone: TimeZone,
}

impl Nightly {
    /// At `at` (`HH:MM`) in a time zone by IANA's name; none: UTC, also where the name is not known. None if `at` is no time of day.
    #[must_use]
    pub fn new(at: &str, zone: Option<&str>) -> Option<Self> {
        let (hour, minute) = at.split_once(':')?;
        let number =
            |text: &str| (text.len() == 2 && !text.starts_with('+')).then(|| text.parse::<i8>().ok()).flatten();
        let at = Time::new(number(hour)?, number(minute)?, 0, 0).ok()?;
        let zone = zone.and_then(|name| TimeZoneDatabase::bundled().get(name).ok()).unwrap_or(TimeZone::UTC);
        Some(Self { at, zone })
    }

    /// The last time of this kind that is not behind `now`. On a day whose clock skips that time, it is as much later.
    #[must_use]
    pub fn last(&self, now: SystemTime) -> Option<SystemTime> {
        let since = now.duration_since(UNIX_EPOCH).ok()?;
        let now = Timestamp::from_nanosecond(i128::try_from(since.as_nanos()).ok()?).ok()?;
        let mut day = now.to_zoned_datetime(self.zone.clone()).date();
        for _ in 0..3 {
            let then = day.to_datetime(self.at).to_zoned_datetime(self.zone.clone()).ok()?.timestamp();
            if then <= now {
                let nanoseconds = u64::try_from(then.as_nanosecond()).ok()?;
                return Some(UNIX_EPOCH + std::time::Duration::from_nanos(nanoseconds));
            }
            day = day.yesterday().ok()?;
        }
        None
    }

    /// Whether it is to be done now, if it was last done, or begun to be waited for, at `since`. A machine that slept over it
    /// does it once when it wakes.
    #[must_use]
    pub fn is_due(&self, since: SystemTime, now: SystemTime) -> bool {
        self.last(now).is_some_and(|last| last > since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        let time: Timestamp = text.parse().unwrap();
        UNIX_EPOCH + std::time::Duration::from_nanos(time.as_nanosecond().try_into().unwrap())
    }

    #[test]
    fn once_a_night_in_the_zone_it_was_said_for() {
        let nightly = Nightly::new("03:00", Some("Asia/Shanghai")).unwrap();
        assert_eq!(nightly.last(at("2026-05-04T18:59:59Z")), Some(at("2026-05-03T19:00:00Z")));
        assert_eq!(nightly.last(at("2026-05-04T19:00:00Z")), Some(at("2026-05-04T19:00:00Z")));
        let since = at("2026-05-04T12:00:00Z");
        assert!(!nightly.is_due(since, at("2026-05-04T18:00:00Z")));
        assert!(nightly.is_due(since, at("2026-05-07T01:00:00Z")), "it slept for two days, and does it once");
        assert!(!nightly.is_due(at("2026-05-07T01:00:00Z"), at("2026-05-07T02:00:00Z")));
    }

    #[test]
    fn a_night_without_that_time_has_one_all_the_same() {
        // The clock goes from two to three in the night of 29 March.
        let nightly = Nightly::new("02:30", Some("Europe/Berlin")).unwrap();
        assert_eq!(nightly.last(at("2026-03-29T12:00:00Z")), Some(at("2026-03-29T01:30:00Z")));
        assert_eq!(nightly.last(at("2026-10-25T12:00:00Z")), Some(at("2026-10-25T00:30:00Z")), "the first of two");
    }

    #[test]
    fn what_is_no_time_of_day() {
        for bad in ["", "3:00", "24:00", "03:60", "03", "03:00:00", "-3:00", "+3:00"] {
            assert!(Nightly::new(bad, None).is_none(), "{bad}");
        }
        assert_eq!(
            Nightly::new("23:59", Some("No/Where")).unwrap().last(at("2026-05-04T12:00:00Z")),
            Some(at("2026-05-03T23:59:00Z"))
        );
    }
}

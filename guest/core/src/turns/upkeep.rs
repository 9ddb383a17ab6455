//! When memory is put in order after turns were written: after so many batches or tokens the part that was written to, and as a
//! whole once a day. Both programs count in the same members of `runtime.json`, so that neither does twice what the other did.

use crate::time::{Instant, Zone};
use crate::views::RuntimeState;
use serde_json::Value;

/// How often. Field names are the settings'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpkeepLimits {
    /// `upkeep.batches`: batches after which what was written to is put in order.
    pub batches: u64,
    /// `upkeep.tokens`: tokens of turns after which it is.
    pub tokens: u64,
    /// `upkeep.whole-s`: seconds after which all of memory is.
    pub whole_s: u64,
}

impl UpkeepLimits {
    /// The setting's name of [`UpkeepLimits::batches`].
    pub const BATCHES: &'static str = "upkeep.batches";
    /// The setting's name of [`UpkeepLimits::tokens`].
    pub const TOKENS: &'static str = "upkeep.tokens";
    /// The setting's name of [`UpkeepLimits::whole_s`].
    pub const WHOLE_S: &'static str = "upkeep.whole-s";
}

impl Default for UpkeepLimits {
    fn default() -> Self {
        Self { batches: 5, tokens: 40_000, whole_s: 86_400 }
    }
}

/// What is put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// What was written to since the last time.
    Recent,
    /// All of memory.
    Whole,
}

const COMMITS: &str = "write_commits_since_global";
const BATCHES: &str = "local_batches";
const TOKENS: &str = "local_tokens";
const WHOLE_AT: &str = "last_global_at";

/// Counts a batch of so many tokens that was written, and says what is to be put in order now. Counters that are due begin anew:
/// the whole does not include the recent, which is counted on. Values that are no numbers count as nought, a time that is none
/// as never.
pub fn after_batch(state: &mut RuntimeState, tokens: u64, now: Instant, limits: &UpkeepLimits) -> Vec<Upkeep> {
    let count = |state: &RuntimeState, name: &str| state.member(name).and_then(Value::as_u64).unwrap_or_default();
    let mut commits = count(state, COMMITS).saturating_add(1);
    let mut batches = count(state, BATCHES).saturating_add(1);
    let mut sum = count(state, TOKENS).saturating_add(tokens);
    let mut due = Vec::new();
    if batches >= limits.batches || sum >= limits.tokens {
        due.push(Upkeep::Recent);
        (batches, sum) = (0, 0);
    }
    let last = state.member(WHOLE_AT).and_then(Value::as_str).and_then(Instant::parse);
    if last.is_none_or(|last| now.seconds_since(last) >= limits.whole_s as f64) {
        due.push(Upkeep::Whole);
        commits = 0;
        state.set_member(WHOLE_AT, now.iso(&Zone::utc()).into());
    }
    state.set_member(COMMITS, commits.into());
    state.set_member(BATCHES, batches.into());
    state.set_member(TOKENS, sum.into());
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_run_over() {
        let now = |seconds: f64| Instant::from_seconds(1_800_000_000.0 + seconds).expect("an instant");
        let limits = UpkeepLimits::default();
        let mut state = RuntimeState::default();
        assert_eq!(after_batch(&mut state, 10, now(0.0), &limits), [Upkeep::Whole]);
        for _ in 0..3 {
            assert_eq!(after_batch(&mut state, 10, now(1.0), &limits), []);
        }
        assert_eq!(after_batch(&mut state, 10, now(1.0), &limits), [Upkeep::Recent]);
        assert_eq!(after_batch(&mut state, 40_000, now(86_400.0), &limits), [Upkeep::Recent, Upkeep::Whole]);
        assert_eq!(after_batch(&mut state, 39_999, now(86_401.0), &limits), []);
        // A clock that was put back by years does not keep it waiting for years.
        state.set_member(WHOLE_AT, "yesterday".into());
        assert_eq!(after_batch(&mut state, 0, now(86_401.0), &limits), [Upkeep::Whole]);
    }
}

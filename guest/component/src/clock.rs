//! What time it is, as the host says.

use recollex_core::time::Instant;

/// The time; the beginning of 1970 where the host's clock shows none that there is.
pub(crate) fn now() -> Instant {
    Instant::from_seconds(seconds()).unwrap_or_default()
}

/// Seconds since 1970, UTC, as other programs keep them.
pub(crate) fn seconds() -> f64 {
    let now = wasi::clocks::wall_clock::now();
    now.seconds as f64 + f64::from(now.nanoseconds) / 1e9
}

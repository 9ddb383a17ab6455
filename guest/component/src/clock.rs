//! What time it is, as the host says.

/// Seconds since 1970, UTC, as other programs keep them.
pub(crate) fn now() -> f64 {
    let now = wasi::clocks::wall_clock::now();
    now.seconds as f64 + f64::from(now.nanoseconds) / 1e9
}

//! Instants, and how they are written down.
//!
//! Knows time zones and ISO 8601. The zones come with the program (IANA's database), so that the same instant is written
//! the same way on every machine. There is no clock here: an instant comes from outside.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Seconds of the first and last instants that are written, in 0001-01-02 and 9999-12-30, so that the year has four digits in every zone.
const RANGE: core::ops::RangeInclusive<i64> = -62_135_510_400..=253_402_207_199;

/// Microseconds of a second.
const MICROS: i64 = 1_000_000;

/// A time zone.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// There is no time zone of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone `{name}`; give an IANA name such as Europe/Berlin, or none for UTC")]
pub struct UnknownZone {
    /// As given, at most 64 characters of it.
    pub name: String,
}

impl Zone {
    /// Coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// By its IANA name; upper and lower case are one.
    ///
    /// # Errors
    /// [`UnknownZone`] for any other text.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        let unknown = |_| UnknownZone { name: name.chars().take(64).collect() };
        TimeZoneDatabase::bundled().get(name).map(Self).map_err(unknown)
    }
}

/// A point in time, to the microsecond. The default is the beginning of 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Timestamp);

impl Instant {
    /// So many seconds after 1970 began in UTC. Halves of a microsecond go to the even one, as the other program rounds
    /// them. None for what is no number or outside the years 1 to 9999.
    #[must_use]
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        // The cast saturates; what it would change is outside the range.
        let whole = seconds.trunc();
        let micros = ((seconds - whole) * MICROS as f64).round_ties_even() as i64;
        if !seconds.is_finite() || !RANGE.contains(&(whole as i64)) {
            return None;
        }
        Self::new((whole as i64).checked_mul(MICROS)?.checked_add(micros)?)
    }

    /// Reads ISO 8601 with an offset from UTC; what is finer than a microsecond is cut off. None for anything else, also
    /// for a local time without an offset: that is no instant.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let instant: Timestamp = text.parse().ok()?;
        if !RANGE.contains(&instant.as_second()) {
            return None;
        }
        Self::new(instant.as_microsecond())
    }

    /// Seconds from an earlier instant to this one; less than nought if it is a later one.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.0.duration_since(earlier.0).as_secs_f64()
    }

    fn new(micros: i64) -> Option<Self> {
        Timestamp::from_microsecond(micros).ok().map(Self)
    }

    /// `2026-01-02T03:04:05+00:00`, the time in that zone and its offset from UTC. Microseconds are written, all six
    /// digits, unless they are zero; seconds of the offset likewise, which zones had before they had standard time.
    #[must_use]
    pub fn iso(self, zone: &Zone) -> String {
        use core::fmt::Write as _;
        let (local, offset) = (zone.0.to_datetime(self.0), zone.0.to_offset(self.0).seconds());
        let (date, time) = (local.date(), local.time());
        let mut out = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
        let micros = time.subsec_nanosecond() / 1000;
        // Writing to a String cannot fail.
        if micros != 0 {
            let _ = write!(out, ".{micros:06}");
        }
        let (sign, offset) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
        let _ = write!(out, "{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60);
        if !offset.is_multiple_of(60) {
            let _ = write!(out, ":{:02}", offset % 60);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(seconds: f64, zone: &str) -> String {
        Instant::from_seconds(seconds).unwrap().iso(&Zone::named(zone).unwrap())
    }

    #[test]
    fn written_as_the_other_program_does() {
        // The first is in its vectors; the others are what Python's `datetime` makes of them.
        assert_eq!(written(1_700_000_000.0, "UTC"), "2023-11-14T22:13:20+00:00");
        assert_eq!(written(1_700_000_000.123_456, "UTC"), "2023-11-14T22:13:20.123456+00:00");
        assert_eq!(written(1_700_000_000.5, "Asia/Kolkata"), "2023-11-15T03:43:20.500000+05:30");
        assert_eq!(written(1_720_000_000.0, "Europe/Berlin"), "2024-07-03T11:46:40+02:00");
        assert_eq!(written(-0.25, "America/New_York"), "1969-12-31T18:59:59.750000-05:00");
        assert_eq!(written(-3_000_000_000.0, "Europe/Berlin"), "1874-12-07T19:33:28+00:53:28");
        assert_eq!(written(0.999_999_9, "UTC"), "1970-01-01T00:00:01+00:00");
        assert_eq!(written(0.000_000_5, "UTC"), "1970-01-01T00:00:00+00:00");
        assert_eq!(written(0.000_001_5, "UTC"), "1970-01-01T00:00:00.000002+00:00");
    }

    #[test]
    fn zones_by_name_only() {
        for name in ["UTC", "Europe/Berlin", "europe/berlin", "America/Argentina/Buenos_Aires", "Asia/Shanghai"] {
            assert!(Zone::named(name).is_ok(), "{name}");
        }
        for name in ["", "Berlin", "Mars/Olympus", "+01:00", "EST5EDT,M3.2.0,M11.1.0", "../UTC", "UTC\0"] {
            assert_eq!(Zone::named(name).unwrap_err(), UnknownZone { name: name.to_owned() });
        }
        assert_eq!(Zone::named(&"x".repeat(1000)).unwrap_err().name.len(), 64);
    }

    #[test]
    fn text_with_an_offset_is_an_instant() {
        let utc = Zone::utc();
        for (text, iso) in [
            ("2024-01-15T10:30:00Z", "2024-01-15T10:30:00+00:00"),
            ("2024-01-15T10:30:00.123Z", "2024-01-15T10:30:00.123000+00:00"),
            ("2024-01-15T10:30:00.123456789+01:00", "2024-01-15T09:30:00.123456+00:00"),
            ("2024-01-15 10:30:00-0830", "2024-01-15T19:00:00+00:00"),
        ] {
            assert_eq!(Instant::parse(text).map(|instant| instant.iso(&utc)).as_deref(), Some(iso), "{text}");
        }
        for text in [
            "",
            "2024-01-15",
            "2024-01-15T10:30:00",
            "2024-13-01T00:00:00Z",
            "1705314600",
            "now",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_has_no_four_digit_year_is_no_instant() {
        for seconds in [f64::NAN, f64::INFINITY, 1e300, -1e300, 253_402_300_800.0, -62_135_596_801.0] {
            assert_eq!(Instant::from_seconds(seconds), None, "{seconds}");
        }
        for seconds in [253_402_207_199.999, -62_135_510_400.0] {
            for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"] {
                let text = written(seconds, zone);
                assert_eq!(text.find('-'), Some(4), "{text}");
            }
        }
    }
}

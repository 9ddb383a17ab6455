//! Moments in the other program's spelling: seconds since 1970 as a number, and as ISO 8601 in UTC.
//!
//! Both are Python's (`repr` of a float, `datetime.isoformat`), because ids and files that both programs keep are made of
//! them. Knows the calendar; nobody here knows what time it is.

/// The last second of the year 9999, and one.
const END: f64 = 253_402_300_800.0;

/// A moment as `2027-01-15T07:59:59.500000+00:00`, to the microsecond, the fraction left out where it is nothing. None
/// before 1970 or after the year 9999.
pub fn iso_utc(seconds: f64) -> Option<String> {
    if !(0.0..END).contains(&seconds) {
        return None;
    }
    let whole = seconds.trunc();
    let micros = ((seconds - whole) * 1e6).round_ties_even() as u32;
    // Both fit: the range was checked.
    let (second, micros) = if micros < 1_000_000 { (whole as i64, micros) } else { (whole as i64 + 1, 0) };
    let (year, month, day) = civil(second / 86_400);
    let of_day = second % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    (year <= 9999).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}+00:00"))
}

/// Year, month and day of the day with that number, counted from 1970-01-01. Years here begin in March, so that a leap day
/// is their last; 146,097 days are the 400 years after which the calendar repeats.
fn civil(days: i64) -> (i64, i64, i64) {
    // From 0000-03-01 on.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    (year + year_of_era + era * 400, month, day)
}

/// A number as Python writes it: the shortest digits that give it back, with a point or an exponent.
pub fn python_float(number: f64) -> String {
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    // Python has a sign and at least two digits there, and no `.0` before it.
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{}e{sign}{exponent:0>2}", digits.strip_suffix(".0").unwrap_or(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        for (seconds, iso) in [
            (0.0, "1970-01-01T00:00:00+00:00"),
            (951_782_400.0, "2000-02-29T00:00:00+00:00"),
            (1_799_999_999.5, "2027-01-15T07:59:59.500000+00:00"),
            (1_799_999_999.999_999_9, "2027-01-15T08:00:00+00:00"),
            (4_107_542_400.0, "2100-03-01T00:00:00+00:00"),
            (4_107_542_399.0, "2100-02-28T23:59:59+00:00"),
            (253_402_300_799.0, "9999-12-31T23:59:59+00:00"),
            (1e-6, "1970-01-01T00:00:00.000001+00:00"),
        ] {
            assert_eq!(iso_utc(seconds).as_deref(), Some(iso), "{seconds}");
        }
        for none in [-1e-9, f64::NAN, f64::INFINITY, END, END - 1e-9] {
            assert_eq!(iso_utc(none), None, "{none}");
        }
    }

    #[test]
    fn numbers() {
        for (number, text) in [
            (1_800_000_000.0, "1800000000.0"),
            (1_799_999_999.5, "1799999999.5"),
            (0.0, "0.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (-2.5e300, "-2.5e+300"),
        ] {
            assert_eq!(python_float(number), text);
        }
    }
}

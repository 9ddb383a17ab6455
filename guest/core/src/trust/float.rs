//! Numbers in the other program's spelling: ids and files that both programs keep are made of them.
//!
//! Knows digits. Must not know what they count.

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

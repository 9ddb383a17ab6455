//! What a benchmark tells: one line, and how its figures come about.
//!
//! Knows numbers only. Must not know what was measured.

use serde::Serialize;

/// One line of output. `n` says how much a round goes through, or, where growth is measured, the largest size.
#[derive(Debug, Default, Serialize)]
pub struct Line {
    /// Whose figures these are.
    pub name: String,
    /// How many of what the benchmark's documentation says.
    pub n: u64,
    /// What `native` and `wasm` are in.
    pub unit: &'static str,
    /// Without the component.
    pub native: Option<f64>,
    /// Through the component.
    pub wasm: Option<f64>,
    /// How many times longer wasm takes.
    pub ratio: Option<f64>,
    /// How the figure grows with the size, as the exponent of a power: 0 not at all, 1 in proportion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope: Option<f64>,
    /// The sizes that the slope is taken from, and the figure at each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(u64, f64)>,
    /// Why there is no figure, or why it should not be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Which side a figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Host code by itself.
    Native,
    /// A call of the component.
    Wasm,
}

impl Line {
    /// A single figure.
    pub fn figure(name: &str, n: u64, unit: &'static str, side: Side, value: f64) -> Self {
        let (native, wasm) = match side {
            Side::Native => (Some(rounded(value)), None),
            Side::Wasm => (None, Some(rounded(value))),
        };
        Self { name: name.to_owned(), n, unit, native, wasm, ..Self::default() }
    }

    /// Growth: the figure at each size, smallest first. The line's own figure is that of the largest.
    pub fn growth(name: &str, unit: &'static str, side: Side, points: Vec<(u64, f64)>) -> Self {
        let (n, value) = points.last().copied().unwrap_or_default();
        let slope = slope(&points).map(rounded);
        let points = points.into_iter().map(|(n, value)| (n, rounded(value))).collect();
        Self { slope, points, ..Self::figure(name, n, unit, side, value) }
    }
}

/// The exponent of the power of the size that fits the points best (least squares of the logarithms).
#[allow(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn slope(points: &[(u64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|(n, value)| ((*n as f64).ln(), value.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let spread: f64 = logs.iter().map(|log| (log.0 - x).powi(2)).sum();
    let slope = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum::<f64>() / spread;
    slope.is_finite().then_some(slope)
}

/// The value in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// To two decimals: more would be noise. Small figures keep three digits.
pub fn rounded(value: f64) -> f64 {
    let digits = if value == 0.0 || value.abs() >= 1.0 { 2.0 } else { 2.0 - value.abs().log10().floor() };
    let scale = 10_f64.powf(digits.min(9.0));
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_the_exponent() {
        let points = |of: fn(f64) -> f64| [1_u64, 10, 100].map(|n| (n, of(n as f64)));
        let slope = |points: [(u64, f64); 3]| (slope(&points).unwrap() * 1000.0).round() / 1000.0;
        assert_eq!(slope(points(|_| 7.0)), 0.0);
        assert_eq!(slope(points(|n| 3.0 * n)), 1.0);
        assert_eq!(slope(points(|n| n * n)), 2.0);
        assert_eq!(super::slope(&[(1, 5.0)]), None);
    }

    #[test]
    fn figures_keep_what_they_say() {
        assert_eq!((rounded(1234.567), rounded(0.012_345), rounded(0.0)), (1234.57, 0.0123, 0.0));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
    }
}

//! [`Spread`]: mean, standard deviation and range, as the papers print them.

/// Mean, standard deviation of the sample, smallest and largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n − 1); zero for a single value.
    pub sd: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Self {
            count,
            mean,
            sd,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// `12.3 ± 1.4 (11 to 14)`, with so many decimals; a single value alone.
    pub fn text(self, decimals: usize) -> String {
        if self.min >= self.max {
            return format!("{:.decimals$}", self.mean);
        }
        let more = decimals.max(1);
        format!(
            "{:.more$} ± {:.more$} ({:.decimals$} to {:.decimals$})",
            self.mean, self.sd, self.min, self.max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_a_sample() {
        let spread = Spread::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((spread.mean - 5.0).abs() < 1e-12);
        assert!((spread.sd - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((spread.min, spread.max, spread.count), (2.0, 9.0, 8));
        assert_eq!(spread.text(0), "5.0 ± 2.1 (2 to 9)");
        assert_eq!(Spread::of([3.0]).unwrap().text(2), "3.00");
        assert_eq!(Spread::of([]), None);
    }
}

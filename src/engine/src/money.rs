//! Money: whole millionths of a US dollar, so that sums are exact and the same everywhere. Written as a plain number of
//! dollars wherever a person or a script may read it.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MICROS: f64 = 1_000_000.0;
/// A thousand million dollars: more than anybody means, and exact as a number of any kind. Sums stop here, so that
/// whatever is written can be read.
const MOST_DOLLARS: f64 = 1e9;
const MOST: u64 = 1_000_000_000_000_000;

/// An amount of US dollars, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(u64);

/// A number that is no amount of money.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0} is not an amount: write dollars as a number from 0 to 1000000000, such as 0.42")]
pub struct BadAmount(String);

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The least that is something.
    pub const LEAST: Self = Self(1);
    /// The most that is counted.
    pub const MOST: Self = Self(MOST);

    /// So many dollars, rounded to a millionth.
    pub fn from_dollars(dollars: f64) -> Result<Self, BadAmount> {
        if (0.0..=MOST_DOLLARS).contains(&dollars) {
            Ok(Self((dollars * MICROS).round() as u64))
        } else {
            Err(BadAmount(dollars.to_string()))
        }
    }

    /// Whether it is nothing at all.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// As a number of dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / MICROS
    }

    /// What is left of it after `other` was taken away, at least nothing.
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many hundredths of it.
    pub fn percent(self, n: u64) -> Self {
        Self((u128::from(self.0) * u128::from(n) / 100) as u64)
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0).min(MOST);
    }
}

impl std::str::FromStr for Usd {
    type Err = BadAmount;
    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let dollars: f64 = text.parse().map_err(|_| BadAmount(format!("{text:?}")))?;
        Self::from_dollars(dollars)
    }
}

impl fmt::Display for Usd {
    /// `$12.40`; smaller than a cent with all its digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(10_000) || self.0 >= 1_000_000 {
            return write!(f, "${:.2}", self.dollars());
        }
        write!(f, "${}", self.dollars())
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::from_dollars(f64::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().expect("an amount")
    }

    #[test]
    fn sums_are_exact() {
        let mut sum = Usd::ZERO;
        for _ in 0..10 {
            sum += usd("0.1");
        }
        assert_eq!(sum, usd("1"));
        assert_eq!((usd("10").percent(80), usd("1").less(usd("3"))), (usd("8"), Usd::ZERO));
    }

    #[test]
    fn no_sum_grows_beyond_what_can_be_read_again() {
        let mut sum = Usd::MOST;
        sum += Usd::MOST;
        let json = serde_json::to_string(&sum).expect("a number");
        assert_eq!(serde_json::from_str::<Usd>(&json).expect("read back"), Usd::MOST);
    }

    #[test]
    fn an_amount_survives_being_written_down() {
        for text in ["0", "0.000001", "0.1", "123456.789012", "1000000000"] {
            let json = serde_json::to_string(&usd(text)).expect("a number");
            assert_eq!(serde_json::from_str::<Usd>(&json).expect("read back"), usd(text), "{json}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "ten", "-1", "NaN", "inf", "1e10", "$5"] {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Usd>("-0.5").is_err());
    }

    #[test]
    fn people_read_dollars_and_cents() {
        let written: Vec<String> =
            ["12.4", "0.5", "0.0042", "7"].iter().map(|t| usd(t).to_string()).collect();
        assert_eq!(written, ["$12.40", "$0.50", "$0.0042", "$7.00"]);
    }
}

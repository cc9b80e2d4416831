//! What a worker asks of Slurm: a record that config and formulas fill in, and the words that may stand in it.

use serde::{Deserialize, Serialize};

use crate::Millis;

/// Longest word that may be passed on to Slurm.
const LONGEST_WORD: usize = 128;

/// What a job asks for; whatever is not said is left to Slurm.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SlurmRequest {
    /// The partition it runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The account that is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// How long it may run before Slurm ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Millis>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Generic resources, as `gpu:a100:2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gres: Option<String>,
}

impl SlurmRequest {
    /// The same, with the defaults for whatever it does not say.
    #[must_use]
    pub fn or(self, defaults: &Self) -> Self {
        Self {
            partition: self.partition.or_else(|| defaults.partition.clone()),
            account: self.account.or_else(|| defaults.account.clone()),
            time_limit: self.time_limit.or(defaults.time_limit),
            cpus: self.cpus.or(defaults.cpus),
            memory: self.memory.or(defaults.memory),
            gres: self.gres.or_else(|| defaults.gres.clone()),
        }
    }
}

/// Whether a text may be passed on as a partition, an account or a resource: it begins with a letter or a digit, so that
/// it is never taken for an option, and has nothing in it that a shell or a list of Slurm's would understand otherwise.
pub fn is_slurm_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:=+@/-".contains(&byte);
    text.len() <= LONGEST_WORD
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_says_more_than_the_config_and_leaves_the_rest_to_it() {
        let config = SlurmRequest {
            partition: Some("main".to_owned()),
            cpus: Some(1),
            gres: Some("gpu:1".to_owned()),
            ..SlurmRequest::default()
        };
        let formula =
            SlurmRequest { partition: Some("big".to_owned()), cpus: Some(8), ..SlurmRequest::default() };
        let both = formula.or(&config);
        assert_eq!((both.partition.as_deref(), both.cpus), (Some("big"), Some(8)));
        assert_eq!((both.gres.as_deref(), both.memory), (Some("gpu:1"), None));
    }

    #[test]
    fn words_that_mean_more_to_somebody_are_not_passed_on() {
        for word in ["main", "gpu:a100:2", "a,b", "user@lab", "n1/big", "0"] {
            assert!(is_slurm_word(word), "{word}");
        }
        let long = "x".repeat(LONGEST_WORD + 1);
        for word in ["", "-p", "--wrap=x", "a b", "a\nb", "$(x)", "a;b", "ä", "'", &long] {
            assert!(!is_slurm_word(word), "{word}");
        }
    }
}

//! The `[slurm]` table of a formula: what its job asks for, where the executor is Slurm.

use serde::Deserialize;
use yard_engine::slurm::{SlurmRequest, is_slurm_word};
use yard_engine::{Millis, parse_size};

/// As it stands in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SlurmTable {
    partition: Option<String>,
    account: Option<String>,
    time_limit: Option<String>,
    cpus: Option<u32>,
    memory: Option<Memory>,
    gres: Option<String>,
}

/// Bytes, or a text such as `4GiB`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Memory {
    Bytes(u64),
    Text(String),
}

impl SlurmTable {
    /// What it asks for, or what to correct.
    pub(super) fn check(self) -> Result<SlurmRequest, String> {
        let word = |key: &str, text: Option<String>| match text {
            Some(text) if !is_slurm_word(&text) => Err(format!(
                "slurm.{key} is {text:?}: use letters, digits and any of _.,:=+@/-, beginning with a letter or digit"
            )),
            text => Ok(text),
        };
        let time_limit = self.time_limit.map(|text| match humantime::parse_duration(&text) {
            Ok(span) if !span.is_zero() => Ok(Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))),
            _ => Err(format!("slurm.time_limit is \"{text}\": write it like \"30m\" or \"2h\"")),
        });
        let memory = self.memory.map(|memory| match memory {
            Memory::Bytes(bytes) if bytes > 0 => Ok(bytes),
            Memory::Text(text) if parse_size(&text).is_some_and(|bytes| bytes > 0) => {
                Ok(parse_size(&text).unwrap_or_default())
            }
            other => Err(format!("slurm.memory is {other:?}: write it like \"4GiB\"")),
        });
        if self.cpus == Some(0) {
            return Err("slurm.cpus is 0: a job needs at least one".to_owned());
        }
        Ok(SlurmRequest {
            partition: word("partition", self.partition)?,
            account: word("account", self.account)?,
            time_limit: time_limit.transpose()?,
            cpus: self.cpus,
            memory: memory.transpose()?,
            gres: word("gres", self.gres)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SlurmRequest, String> {
        let table: SlurmTable = toml::from_str(text).map_err(|error| error.to_string())?;
        table.check()
    }

    #[test]
    fn a_job_says_what_it_needs() {
        let text = "partition = 'gpu'\naccount = 'lab'\ntime_limit = '2h'\ncpus = 8\nmemory = '4GiB'\ngres = 'gpu:1'";
        let wanted = SlurmRequest {
            partition: Some("gpu".to_owned()),
            account: Some("lab".to_owned()),
            time_limit: Some(Millis::minutes(120)),
            cpus: Some(8),
            memory: Some(4 << 30),
            gres: Some("gpu:1".to_owned()),
        };
        assert_eq!(read(text), Ok(wanted));
        assert_eq!(read("memory = 1048576").map(|it| it.memory), Ok(Some(1 << 20)));
        assert_eq!(read(""), Ok(SlurmRequest::default()));
    }

    #[test]
    fn what_slurm_would_take_for_something_else_is_refused() {
        for (text, word) in [
            ("partition = '--wrap=reboot'", "slurm.partition"),
            ("account = 'a b'", "slurm.account"),
            ("gres = 'gpu:$(id)'", "slurm.gres"),
            ("time_limit = '0s'", "slurm.time_limit"),
            ("time_limit = 'soon'", "soon"),
            ("cpus = 0", "slurm.cpus"),
            ("cpus = -1", "cpus"),
            ("memory = 'much'", "slurm.memory"),
            ("memory = 0", "slurm.memory"),
            ("qos = 'high'", "qos"),
        ] {
            let said = read(text).expect_err(text);
            assert!(said.contains(word), "{text}: {said}");
        }
    }
}

//! Taking an edit of the config file back, or making it again. The file is a person's: what it has come to say
//! meanwhile is never overwritten. Whoever is interrupted may ask again; an edit that was made already counts as made.

use std::path::Path;

use serde_json::Value as Json;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};
use yard_engine::Refusal;
use yard_engine::undo::ConfigEdit;

use super::ConfigError;
use super::file::{edit, insert, take_out};
use super::keys;
use super::value;

/// What became of an edit.
#[derive(Debug, Clone, PartialEq)]
pub enum PutBack {
    /// The file says what it should.
    Done,
    /// The file says something else than it did then, and was left alone.
    Otherwise(Refusal),
}

/// Makes an edit if the file still says what it said before.
pub fn put_back(path: &Path, wanted: &ConfigEdit) -> Result<PutBack, ConfigError> {
    let place = keys::find(&wanted.key)
        .map_or_else(|_| wanted.key.split('.').map(str::to_owned).collect::<Vec<_>>(), |place| place.path());
    let (before, after) = (read(wanted.before.as_deref())?, read(wanted.after.as_deref())?);
    edit(path, |document| {
        let root = document.as_table_mut();
        let now = find(root, &place).map(|(_, item)| value::to_json(&item));
        let says =
            |entry: &Option<(toml_edit::Key, Item)>| entry.as_ref().map(|(_, item)| value::to_json(item));
        if now == says(&after) {
            return Ok(PutBack::Done);
        }
        if now != says(&before) {
            return Ok(PutBack::Otherwise(otherwise(&wanted.key, now.as_ref(), says(&before).as_ref())));
        }
        match after {
            Some((key, item)) => insert(root, &place, &key, item)?,
            None => {
                take_out(root, &place);
            }
        }
        Ok(PutBack::Done)
    })
}

fn otherwise(key: &str, now: Option<&Json>, then: Option<&Json>) -> Refusal {
    let words = |value: Option<&Json>| value.map_or("not set".to_owned(), ToString::to_string);
    let message =
        format!("{key} is {} in the config file by now, not {}; it is left alone", words(now), words(then));
    Refusal::new("config-changed", message).hint(format!("ym config set {key} VALUE"))
}

/// An entry of the file as it stands there, with the comments around it.
pub(super) fn entry_text(root: &Table, path: &[String]) -> Option<String> {
    let (key, item) = find(root, path)?;
    let mut alone = DocumentMut::new();
    alone.as_table_mut().insert_formatted(&key, item);
    Some(alone.to_string())
}

/// An entry, by its path.
pub(super) fn find(root: &Table, path: &[String]) -> Option<(toml_edit::Key, Item)> {
    let (last, tables) = path.split_last()?;
    let mut table: &dyn TableLike = root;
    for part in tables {
        table = table.get(part)?.as_table_like()?;
    }
    let (key, item) = table.get_key_value(last)?;
    Some((key.clone(), item.clone()))
}

fn read(text: Option<&str>) -> Result<Option<(toml_edit::Key, Item)>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    let document = text.parse::<DocumentMut>().map_err(|error| super::settings::not_toml(text, &error))?;
    let entry = document.as_table().iter().next().map(|(name, _)| name.to_owned());
    Ok(entry.and_then(|name| {
        let (key, item) = document.as_table().get_key_value(&name)?;
        Some((key.clone(), item.clone()))
    }))
}

/// A value without the space and comments around it.
pub(super) fn bare(mut value: Value) -> Value {
    value.decor_mut().clear();
    value
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{set, unset};
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        fs::write(&path, text).expect("a file");
        (folder, path)
    }

    const COMMENTED: &str = "# our town\n\n[scheduler] # who runs\n# five is plenty\nmax_polecats = 5 # yes\n\n[worker]\nmerge = \"mr\"\n";

    #[test]
    fn an_edit_is_taken_back_and_made_again_with_all_comments() {
        for text in [
            COMMENTED,
            "scheduler.max_polecats = 5\n",
            "scheduler = { max_polecats = 5 }\n",
            "",
            "[worker]\nmerge = \"mr\"\n",
        ] {
            let (_folder, path) = file(text);
            let change = set(&path, "scheduler.max_polecats", "16").expect("set");
            let changed = fs::read_to_string(&path).expect("a text");
            for _ in 0..2 {
                assert_eq!(put_back(&path, &change.edit.reversed()).expect("taken back"), PutBack::Done);
                assert_eq!(fs::read_to_string(&path).expect("a text"), text, "twice is like once");
            }
            put_back(&path, &change.edit).expect("made again");
            assert_eq!(fs::read_to_string(&path).expect("a text"), changed);
        }
    }

    #[test]
    fn a_key_that_was_taken_out_comes_back_with_its_comments() {
        let (_folder, path) = file(COMMENTED);
        let change = unset(&path, "scheduler.max_polecats").expect("unset");
        assert!(!fs::read_to_string(&path).expect("a text").contains("five"));
        put_back(&path, &change.edit.reversed()).expect("taken back");
        assert_eq!(fs::read_to_string(&path).expect("a text"), COMMENTED);
    }

    #[test]
    fn what_a_person_wrote_meanwhile_is_left_alone() {
        let (_folder, path) = file("[scheduler]\nmax_polecats = 5\n");
        let change = set(&path, "scheduler.max_polecats", "16").expect("set");
        for text in
            ["[scheduler]\nmax_polecats = 20\n", "[scheduler]\n", "[scheduler]\nmax_polecats = \"many\"\n"]
        {
            fs::write(&path, text).expect("edited");
            let outcome = put_back(&path, &change.edit.reversed()).expect("looked at");
            assert!(matches!(outcome, PutBack::Otherwise(_)), "{outcome:?}");
            assert_eq!(fs::read_to_string(&path).expect("a text"), text);
        }
        let rewritten = "# all new\nscheduler = { max_polecats = 0x10 }\n";
        fs::write(&path, rewritten).expect("edited");
        assert_eq!(put_back(&path, &change.edit.reversed()).expect("the same value"), PutBack::Done);
        assert_eq!(fs::read_to_string(&path).expect("a text"), rewritten.replace("0x10", "5"));
    }

    #[test]
    fn a_comment_does_not_go_where_it_cannot_stand() {
        let (_folder, path) = file(COMMENTED);
        let change = unset(&path, "scheduler.max_polecats").expect("unset");
        fs::write(&path, "scheduler = { batch_size = 1 }\n").expect("edited");
        put_back(&path, &change.edit.reversed()).expect("taken back");
        assert_eq!(
            fs::read_to_string(&path).expect("a text"),
            "scheduler = { batch_size = 1 , max_polecats = 5 }\n"
        );
    }

    #[test]
    fn tables_and_lists_come_back_too() {
        let text = "[executor.http.instances] # ours\n\"tab-1*\" = \"http://127.0.0.1:1\"\n\n[retry.crash]\nbackoff = [\n  \"1s\", # first\n  \"2s\",\n]\n";
        let (_folder, path) = file(text);
        for key in ["executor.http.instances", "retry.crash.backoff"] {
            let change = unset(&path, key).expect("unset");
            assert!(
                super::super::get(&path, key)
                    .is_ok_and(|value| value != super::super::get(&path, "store").expect("a value"))
            );
            put_back(&path, &change.edit.reversed()).expect("taken back");
        }
        let now = fs::read_to_string(&path).expect("a text");
        assert!(
            now.contains("\"tab-1*\" = \"http://127.0.0.1:1\"") && now.contains("\"1s\", # first"),
            "{now}"
        );
        super::super::read_settings(&path).expect("valid");
    }
}

//! Looking at and changing single keys of the config file.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use serde_json::Value as Json;
use toml_edit::{DocumentMut, Item, Key, Table, TableLike, Value};
use yard_engine::undo::ConfigEdit;

use super::ConfigError;
use super::keys::{self, Absent, KEYS, KeySpec, Place};
use super::put_back::{bare, entry_text, find};
use super::settings::{entries, not_toml, parse_settings, read_text};
use super::value;

/// What an edit changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The key.
    pub key: String,
    /// What stood in the file before.
    pub old: Option<Json>,
    /// What holds now.
    pub new: Json,
    /// The same as it stands in the file.
    #[serde(skip)]
    pub edit: ConfigEdit,
}

/// A key with the value in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value; null where nothing is set.
    pub value: Json,
    /// The file does not say it.
    pub default: bool,
    /// What it is for.
    pub help: String,
    /// Why the value cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The value of a key: from the file, or its default.
pub fn get(path: &Path, key: &str) -> Result<Json, ConfigError> {
    let place = keys::find(key)?;
    let found = entries(&read_text(path)?)?.into_iter().find(|found| found.place == place);
    match found {
        Some(found) => found.meaning.map(|_| found.json),
        None => Ok(default_of(place.spec)),
    }
}

/// Every key with its value; keys of single rigs and accounts only where the file has them.
pub fn list(path: &Path) -> Result<Vec<Entry>, ConfigError> {
    let found = entries(&read_text(path)?)?;
    let mut all = Vec::new();
    for spec in KEYS {
        let here = found.iter().filter(|f| f.place.spec == spec).map(|f| Entry {
            key: f.place.key(),
            value: f.json.clone(),
            default: false,
            help: spec.help.to_owned(),
            problem: f.meaning.as_ref().err().map(ToString::to_string),
        });
        let before = all.len();
        all.extend(here);
        if all.len() == before && !spec.key.contains("NAME") {
            all.push(Entry {
                key: spec.key.to_owned(),
                value: default_of(spec),
                default: true,
                help: spec.help.to_owned(),
                problem: None,
            });
        }
    }
    Ok(all)
}

/// Sets a key to what a person typed.
pub fn set(path: &Path, key: &str, text: &str) -> Result<Change, ConfigError> {
    let place = keys::find(key)?;
    let value = value::typed(&place, text)?;
    edit(path, |document| set_in(document, &place, value))
}

fn set_in(document: &mut DocumentMut, place: &Place, value: Value) -> Result<Change, ConfigError> {
    let new = value::shown(place, &Item::Value(value.clone()));
    let old = find(document.as_table(), &place.path()).map(|(_, item)| value::shown(place, &item));
    let edit = noted(document.as_table_mut(), place.key(), &place.path(), |root, path| {
        let key = Key::new(path.last().map(String::as_str).unwrap_or_default());
        insert(root, path, &key, Item::Value(value))
    })?;
    Ok(Change { key: place.key(), old, new, edit })
}

/// The same in a text instead of a file, for the fuzz target.
pub(crate) fn set_in_text(document: &str, key: &str, text: &str) -> Result<String, ConfigError> {
    let place = keys::find(key)?;
    let value = value::typed(&place, text)?;
    let mut edited = document.parse::<DocumentMut>().map_err(|error| not_toml(document, &error))?;
    set_in(&mut edited, &place, value).map(|_| edited.to_string())
}

/// Takes a key out of the file, so that its default holds. A key nobody knows can be taken out too, if it is there.
pub fn unset(path: &Path, key: &str) -> Result<Change, ConfigError> {
    let found = keys::find(key);
    edit(path, |document| {
        let table = document.as_table_mut();
        match found {
            Ok(place) => {
                let (old, edit) = taken_out(table, place.key(), &place.path())?;
                Ok(Change { key: place.key(), old, new: default_of(place.spec), edit })
            }
            Err(unknown) => {
                let parts: Vec<String> = key.split('.').map(str::to_owned).collect();
                let (old, edit) = taken_out(table, key.to_owned(), &parts)?;
                let old = Some(old.ok_or(unknown)?);
                Ok(Change { key: key.to_owned(), old, new: Json::Null, edit })
            }
        }
    })
}

fn default_of(spec: &KeySpec) -> Json {
    match spec.absent {
        Absent::Is(text) => serde_json::from_str(text).unwrap_or(Json::Null),
        Absent::Word(_) => Json::Null,
    }
}

/// Changes an entry, and notes how it stood in the file before and stands there after.
fn noted(
    root: &mut Table,
    key: String,
    path: &[String],
    change: impl FnOnce(&mut Table, &[String]) -> Result<(), ConfigError>,
) -> Result<ConfigEdit, ConfigError> {
    let before = entry_text(root, path);
    change(root, path)?;
    Ok(ConfigEdit { key, before, after: entry_text(root, path) })
}

fn taken_out(
    root: &mut Table,
    key: String,
    path: &[String],
) -> Result<(Option<Json>, ConfigEdit), ConfigError> {
    let mut old = None;
    let edit = noted(root, key, path, |root, path| {
        old = take_out(root, path);
        Ok(())
    })?;
    Ok((old, edit))
}

/// Puts an entry in its table, making tables on the way. Comments around an entry that is there already are kept;
/// otherwise those of the new one come along, where there is room for them.
pub(super) fn insert(root: &mut Table, path: &[String], key: &Key, item: Item) -> Result<(), ConfigError> {
    let Some((last, tables)) = path.split_last() else { return Ok(()) };
    let mut table: &mut dyn TableLike = root;
    let mut in_line = false;
    for part in tables {
        let item = table.entry(part).or_insert_with(|| {
            let mut new = Table::new();
            new.set_implicit(true);
            Item::Table(new)
        });
        let found = value::to_json(item).to_string();
        in_line = item.is_inline_table();
        table = item.as_table_like_mut().ok_or_else(|| ConfigError::BadValue {
            key: part.clone(),
            line: None,
            expected: "a table of keys".to_owned(),
            found,
        })?;
    }
    match table.get_mut(last) {
        Some(old) => {
            let decor = old.as_value().map(|value| value.decor().clone());
            *old = item;
            if let (Some(decor), Some(new)) = (decor, old.as_value_mut()) {
                *new.decor_mut() = decor;
            }
        }
        // A comment would swallow the rest of the line.
        None if in_line => {
            if let Ok(value) = item.into_value() {
                table.insert(last, Item::Value(bare(value)));
            }
        }
        None => {
            table.entry_format(key).or_insert(item);
        }
    }
    Ok(())
}

/// Takes a value out, and the tables that held nothing else.
pub(super) fn take_out(table: &mut dyn TableLike, path: &[String]) -> Option<Json> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return table.remove(first).map(|item| value::to_json(&item));
    }
    let inner = table.get_mut(first)?;
    let old = take_out(inner.as_table_like_mut()?, rest);
    let commented = inner
        .as_table()
        .is_some_and(|t| t.decor().prefix().and_then(|p| p.as_str()).is_some_and(|p| p.contains('#')));
    if old.is_some() && !commented && inner.as_table_like().is_some_and(TableLike::is_empty) {
        table.remove(first);
    }
    old
}

/// Changes the file under its lock: read, change, write beside, rename. Nothing is written if nothing changed.
pub(super) fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, ConfigError>,
) -> Result<T, ConfigError> {
    let io = |what: &'static str, at: &Path| {
        let path = at.to_owned();
        move |error| ConfigError::Io { what, path, error }
    };
    // A link stays a link: the file it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let lock_path = path.with_file_name("config.lock");
    let mut open = OpenOptions::new();
    let lock = open.write(true).create(true).truncate(false).mode(0o600).open(&lock_path);
    let lock = lock.map_err(io("lock", &lock_path))?;
    lock.lock().map_err(io("lock", &lock_path))?;
    let text = read_text(&path)?;
    let mut document = text.parse::<DocumentMut>().map_err(|error| not_toml(&text, &error))?;
    let answer = change(&mut document)?;
    let new = document.to_string();
    let lacks_tls = |text: &str| parse_settings(text).err().filter(ConfigError::is_needs_tls);
    if let (Some(refused), None) = (lacks_tls(&new), lacks_tls(&text)) {
        return Err(refused);
    }
    if new != text {
        write_durably(&path, &new).map_err(io("write", &path))?;
    }
    Ok(answer)
}

/// Replaces a file so that after a crash either the old or the new text is there, whole.
fn write_durably(path: &Path, text: &str) -> std::io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let beside = path.with_file_name("config.toml.new");
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, text: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("ym-config-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a scratch folder");
            let scratch = Self(folder);
            if !text.is_empty() {
                fs::write(scratch.path(), text).expect("a file");
            }
            scratch
        }
        fn path(&self) -> PathBuf {
            self.0.join("config.toml")
        }
        fn text(&self) -> String {
            fs::read_to_string(self.path()).unwrap_or_default()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn setting_a_key_keeps_comments_and_order() {
        let before = "# our town\n\n[scheduler] # who runs\n# five is plenty\nmax_polecats = 5 # yes\n\n[worker]\nmerge = \"mr\"\n";
        let town = Scratch::new("comments", before);
        let change = set(&town.path(), "scheduler.max_polecats", "-1").expect("set");
        assert_eq!((change.old, change.new), (Some(Json::from(5)), Json::from(-1)));
        assert_eq!(town.text(), before.replace("= 5", "= -1"));
        set(&town.path(), "retry.crash.backoff", "1s 2s").expect("set");
        assert!(town.text().ends_with("[retry.crash]\nbackoff = [\"1s\", \"2s\"]\n"), "{}", town.text());
        unset(&town.path(), "retry.crash.backoff").expect("unset");
        assert_eq!(town.text(), before.replace("= 5", "= -1"));
    }

    #[test]
    fn a_refused_edit_leaves_the_file_alone() {
        let town = Scratch::new("refused", "[scheduler]\nmax_polecats = 5\n");
        assert!(set(&town.path(), "scheduler.max_polecats", "many").is_err());
        assert!(set(&town.path(), "no.such.key", "1").is_err());
        assert_eq!(town.text(), "[scheduler]\nmax_polecats = 5\n");
        let broken = Scratch::new("broken", "[scheduler\n");
        let error = set(&broken.path(), "scheduler.max_polecats", "1").expect_err("not TOML");
        assert_eq!(error.code(), "bad-config");
        assert_eq!(broken.text(), "[scheduler\n");
    }

    #[test]
    fn a_key_that_nobody_knows_can_be_taken_out() {
        let town = Scratch::new("unknown", "[scheduler]\nspeed = 1\nmax_polecats = 5\n");
        assert!(super::super::read_settings(&town.path()).is_err());
        unset(&town.path(), "scheduler.speed").expect("taken out");
        assert_eq!(town.text(), "[scheduler]\nmax_polecats = 5\n");
        assert!(unset(&town.path(), "scheduler.speed").is_err());
    }

    #[test]
    fn an_absent_file_is_made_when_a_key_is_set() {
        let town = Scratch::new("absent", "");
        assert_eq!(get(&town.path(), "scheduler.max_polecats").expect("default"), Json::from(-1));
        assert_eq!(get(&town.path(), "worker.agent").expect("default"), Json::Null);
        set(&town.path(), "scheduler.max_polecats", "5").expect("set");
        set(&town.path(), "store", "sqlite").expect("set");
        set(&town.path(), "rig.api.wake", "touch woken").expect("set");
        assert_eq!(get(&town.path(), "scheduler.max_polecats").expect("set"), Json::from(5));
        let all = list(&town.path()).expect("listed");
        assert!(all.iter().any(|e| e.key == "rig.api.wake" && !e.default));
        assert!(all.iter().any(|e| e.key == "results.ttl" && e.default && e.value == "7d"));
        assert!(!all.iter().any(|e| e.key.contains("NAME")));
        super::super::read_settings(&town.path()).expect("valid");
    }

    #[test]
    fn no_edit_lets_others_listen_in() {
        let town = Scratch::new("plain", "");
        let code = |change: Result<Change, ConfigError>| change.expect_err("refused").code();
        assert_eq!(code(set(&town.path(), "http.listen", "0.0.0.0:7777")), "needs-tls");
        set(&town.path(), "http.tls_cert", "cert.pem").expect("set");
        assert_eq!(code(set(&town.path(), "http.listen", "0.0.0.0:7777")), "needs-tls");
        set(&town.path(), "http.tls_key", "key.pem").expect("set");
        set(&town.path(), "http.listen", "0.0.0.0:7777").expect("set");
        assert_eq!(code(unset(&town.path(), "http.tls_key")), "needs-tls");
        set(&town.path(), "http.listen", "127.0.0.1:7777").expect("set");
        unset(&town.path(), "http.tls_key").expect("unset");
    }

    #[test]
    fn edits_made_at_the_same_time_are_all_kept() {
        let town = Scratch::new("together", "");
        std::thread::scope(|scope| {
            for n in 1..=20 {
                let path = town.path();
                scope.spawn(move || {
                    set(&path, &format!("rig.r{n}.max_polecats"), &n.to_string()).expect("set")
                });
            }
        });
        let settings = super::super::read_settings(&town.path()).expect("valid");
        assert_eq!(settings.rigs.len(), 20);
    }
}

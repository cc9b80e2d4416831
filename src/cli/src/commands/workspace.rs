//! Where the beads of a new rig come from: the beads workspace in its directory, a file that was named, or nowhere.

use std::path::Path;

use yard_engine::rig::BeadSource;

use super::init::checked_prefix;
use crate::errors::Report;

/// What there is to read, and the prefix it shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Beads {
    pub(super) source: Option<BeadSource>,
    pub(super) prefix: Option<String>,
}

impl Beads {
    /// Those of the workspace in a directory, if there is one.
    pub(super) fn of_directory(dir: &Path) -> Self {
        let Some(found) = yard_sources::find(dir) else { return Self::default() };
        // A prefix that no rig may have is as good as none.
        let prefix = found.prefix.and_then(|prefix| checked_prefix(prefix).ok());
        Self { source: Some(found.source), prefix }
    }

    /// Those of a file. Inside the rig's directory it is kept relative, so that both can be moved together.
    pub(super) fn of_file(dir: &Path, file: &Path) -> Result<Self, Report> {
        let bad = |why: &str| {
            Report::new("bad-path", format!("{}: {why}", file.display()))
                .hint("--beads names the JSON lines of a beads workspace, such as .beads/issues.jsonl")
        };
        let kind = std::fs::metadata(file).map_err(|error| bad(&error.to_string()))?;
        if kind.is_dir() {
            return Err(bad("it is a directory, not a file"));
        }
        if !kind.is_file() {
            return Err(bad("it is not a regular file"));
        }
        // The file itself may be replaced at any time; only the way to it is made certain.
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent =
            parent.unwrap_or(Path::new(".")).canonicalize().map_err(|error| bad(&error.to_string()))?;
        let whole = parent.join(file.file_name().unwrap_or_default());
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let kept = whole.strip_prefix(&dir).unwrap_or(&whole);
        let path = kept.to_str().ok_or_else(|| bad("the path is not UTF-8"))?.to_owned();
        Ok(Self { source: Some(BeadSource::Jsonl { path }), prefix: None })
    }
}

/// A source in a few words.
pub(super) fn in_words(source: &BeadSource) -> String {
    match source {
        BeadSource::Jsonl { path } => path.clone(),
        BeadSource::Command { argv } => format!("the command {}", argv.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn jsonl(path: &str) -> BeadSource {
        BeadSource::Jsonl { path: path.to_owned() }
    }

    #[test]
    fn a_directory_with_a_workspace_gives_source_and_prefix() {
        let dir = tempfile::tempdir().expect("temporary directory");
        assert_eq!(Beads::of_directory(dir.path()), Beads::default());
        fs::create_dir(dir.path().join(".beads")).expect("made");
        let file = dir.path().join(".beads/issues.jsonl");
        fs::write(&file, "{\"id\":\"shop-a1\",\"title\":\"T\"}\n").expect("written");
        let beads = Beads::of_directory(dir.path());
        assert_eq!(
            beads,
            Beads { source: Some(jsonl(".beads/issues.jsonl")), prefix: Some("shop".to_owned()) }
        );
        fs::write(&file, "{\"id\":\"hq-a1\",\"title\":\"T\"}\n").expect("written");
        assert_eq!(Beads::of_directory(dir.path()).prefix, None);
    }

    #[test]
    fn a_named_file_must_be_one_and_is_relative_inside_the_rig() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = dir.path().canonicalize().expect("there");
        fs::create_dir(root.join("rig"))
            .and_then(|()| fs::write(root.join("rig/b.jsonl"), ""))
            .expect("made");
        fs::write(root.join("far.jsonl"), "").expect("written");
        let of = |file: &str| Beads::of_file(&root.join("rig"), &root.join(file));
        assert_eq!(of("rig/b.jsonl").expect("a file").source, Some(jsonl("b.jsonl")));
        let far = root.join("far.jsonl");
        assert_eq!(of("far.jsonl").expect("a file").source, Some(jsonl(&far.to_string_lossy())));
        for wrong in ["rig", "nowhere.jsonl", "/dev/null"] {
            assert_eq!(of(wrong).expect_err("no file").code(), "bad-path", "{wrong}");
        }
    }
}

//! Tests of the console as a whole, on the towns of [`crate::testing`].

mod agents;
mod frames;
mod hostile;
mod merges;
mod pictures;
mod registry;
mod snapshots;
mod verbs;
mod ways_about;

/// A file of the repository that a test makes: it must be as it would be made now, or `UPDATE=1` makes it so.
fn kept(path: &str, make: impl FnOnce(&str) -> String) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let made = make(&found);
    if found == made {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        std::fs::write(&file, made).expect("it can be written");
        return;
    }
    panic!("{path} is not what it would be now: look at the change, and run this test with UPDATE=1");
}

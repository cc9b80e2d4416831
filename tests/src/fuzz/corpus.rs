//! Saved inputs: small files, one folder per target.

use std::path::{Path, PathBuf};

/// Larger inputs are not saved.
const LARGEST: usize = 64 * 1024;

/// The saved inputs of a target.
#[derive(Debug, Clone)]
pub struct Corpus {
    folder: PathBuf,
    inputs: Vec<Vec<u8>>,
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/fuzz")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

impl Corpus {
    /// All of them, in the order of their names.
    pub fn load(target: &str) -> Self {
        let folder = home().join(target);
        let read = |name: &String| std::fs::read(folder.join(name)).ok();
        Self { inputs: names(&folder).iter().filter_map(read).collect(), folder }
    }

    /// Every folder there is.
    pub fn folders() -> Vec<String> {
        names(&home())
    }

    /// What was saved.
    pub fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// Saves an input that did harm; where it lies, or what is in the way.
    pub fn save(&self, what: &str, input: &[u8]) -> Result<PathBuf, String> {
        if input.len() > LARGEST {
            return Err(format!("{} bytes are too many to be kept", input.len()));
        }
        let path = self.folder.join(format!("{what}-{:016x}", fingerprint(input)));
        let written = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&path, input));
        written.map(|()| path).map_err(|error| error.to_string())
    }
}

/// FNV-1a: the same in every version of Rust.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

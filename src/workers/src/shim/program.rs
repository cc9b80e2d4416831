//! From an order's words to what the kernel wants: strings ended by NUL, a list of places to look, an environment.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use nix::errno::Errno;

use crate::fence;
use crate::spec::{RunSpec, StepSpec};
use crate::sys::{self, SpawnError, Stage};
use crate::trouble::is_machines_fault;

/// Where programs are looked up when the environment has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// The environment that an order's variables are added to.
pub(super) struct Inherited(Vec<(Vec<u8>, CString)>);

impl Inherited {
    pub(super) fn from_process() -> Self {
        let entries = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_vec();
            let entry = [&name, b"=".as_slice(), value.as_bytes()].concat();
            Some((name, CString::new(entry).ok()?))
        });
        Self(entries.collect())
    }

    /// Entries of `NAME=value`, each ended by NUL.
    pub(super) fn from_block(block: &[u8]) -> Self {
        let entries = block.split(|&b| b == 0).filter_map(|entry| {
            let name = entry.get(..entry.iter().position(|&b| b == b'=')?)?;
            Some((name.to_vec(), CString::new(entry).ok()?))
        });
        Self(entries.collect())
    }

    /// Puts those variables of this very process in place of the inherited ones.
    pub(super) fn set_own(&mut self, is_own: impl Fn(&[u8]) -> bool) {
        self.0.retain(|(inherited, _)| !is_own(inherited));
        self.0.extend(Self::from_process().0.into_iter().filter(|(own, _)| is_own(own)));
    }

    /// The value of a variable.
    pub(super) fn value(&self, name: &str) -> Option<&[u8]> {
        let (name, entry) = self.0.iter().find(|(it, _)| it == name.as_bytes())?;
        entry.as_bytes().get(name.len() + 1..)
    }
}

/// What all steps of a dispatch share.
pub(super) struct Environment {
    pub entries: Vec<CString>,
    pub cwd: CString,
    path: Vec<u8>,
}

impl Environment {
    /// The inherited environment, with the order's variables in place of inherited ones.
    pub(super) fn new(inherited: &Inherited, spec: &RunSpec) -> Result<Self, String> {
        let kept = inherited
            .0
            .iter()
            .filter(|(name, _)| std::str::from_utf8(name).map_or(true, |name| spec.variable(name).is_none()))
            .filter(|(name, _)| name != fence::VARIABLE.as_bytes());
        let mut entries: Vec<CString> = kept.map(|(_, entry)| entry.clone()).collect();
        for (index, (name, value)) in spec.env.iter().enumerate() {
            // Of a variable given twice the last one counts.
            if spec.env[index + 1..].iter().any(|(later, _)| later == name) {
                continue;
            }
            let entry = CString::new(format!("{name}={value}"))
                .map_err(|_| format!("the variable {name} holds a NUL byte"))?;
            entries.push(entry);
        }
        let path = match spec.variable("PATH") {
            Some(path) => path.as_bytes().to_vec(),
            None => inherited
                .0
                .iter()
                .find(|(name, _)| name == b"PATH")
                .map_or(DEFAULT_PATH.to_vec(), |(_, entry)| entry.as_bytes()[5..].to_vec()),
        };
        let cwd = CString::new(spec.cwd.as_os_str().as_bytes())
            .map_err(|_| "the working directory holds a NUL byte".to_owned())?;
        Ok(Self { entries, cwd, path })
    }
}

/// One step, ready to run.
pub(super) struct Program {
    pub argv: Vec<CString>,
    pub candidates: Vec<CString>,
    pub stdin: Option<File>,
    searched: bool,
}

impl Program {
    /// An error says what could not be done, and whether it is the step's fault.
    pub(super) fn new(step: &StepSpec, environment: &Environment) -> Result<Self, (Stage, String)> {
        let argv: Result<Vec<CString>, _> = step.argv.iter().map(|a| CString::new(a.as_str())).collect();
        let argv =
            argv.map_err(|_| (Stage::Setup, format!("an argument of step '{}' holds a NUL byte", step.id)))?;
        let name = match argv.first() {
            Some(name) if !name.is_empty() => name,
            _ => return Err((Stage::Setup, format!("step '{}' names no program", step.id))),
        };
        let searched = !name.as_bytes().contains(&b'/');
        let candidates = if searched {
            // An empty part of PATH means the working directory.
            let places = environment.path.split(|&b| b == b':');
            places
                .map(|place| if place.is_empty() { b".".as_slice() } else { place })
                .filter_map(|place| CString::new([place, b"/", name.as_bytes()].concat()).ok())
                .collect()
        } else {
            vec![name.clone()]
        };
        let stdin = step.stdin.as_deref().map(sys::text_file).transpose();
        let stdin = stdin.map_err(|e| {
            let stage = if is_machines_fault(&e) { Stage::Fork } else { Stage::Setup };
            (stage, format!("the input of step '{}' cannot be prepared: {e}", step.id))
        })?;
        Ok(Self { argv, candidates, stdin, searched })
    }

    /// Says for a person why it does not run.
    pub(super) fn explain(&self, error: SpawnError, cwd: &Path) -> String {
        let name = self.argv.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        let why = lower(error.errno.desc());
        match (error.stage, error.errno) {
            (Stage::Fork, _) => format!("cannot make another process: {why}"),
            (Stage::Setup, _) => format!("cannot set up '{name}': {why}"),
            (Stage::Chdir, _) => format!("cannot enter '{}': {why}", cwd.display()),
            (Stage::Exec, Errno::ENOENT) if self.searched => {
                format!("cannot run '{name}': {why} (looked in PATH)")
            }
            (Stage::Exec, Errno::E2BIG) => {
                format!("cannot run '{name}': {why} (give long text on standard input)")
            }
            (Stage::Exec, _) => format!("cannot run '{name}': {why}"),
        }
    }
}

/// The system's words begin with a capital letter; ours do not.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

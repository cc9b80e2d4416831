//! Formula files: how a bead becomes commands. Parsing only; [`crate::cook`] fills in the values.
//!
//! A formula is looked up in the town first, then among those built in. A key nobody knows is an error, because it is
//! usually a typing mistake in one that matters.

mod slurm;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use yard_engine::settings::Isolation;
use yard_engine::slurm::SlurmRequest;
use yard_engine::{FormulaName, Millis};

use self::slurm::SlurmTable;

/// The largest formula file that is read.
const MAX_SIZE: u64 = 1 << 20;

/// Names that always mean something, and so cannot be declared.
pub(crate) const BUILT_IN_VARIABLES: [&str; 8] =
    ["agent", "args", "bead", "description", "prompt", "prompt_file", "rig", "title"];

/// The formulas that come with the program.
const BUILT_IN: [(&str, &str); 3] = [
    ("demo", include_str!("../../../assets/formulas/demo.toml")),
    ("mol-polecat-work", include_str!("../../../assets/formulas/mol-polecat-work.toml")),
    ("shell", include_str!("../../../assets/formulas/shell.toml")),
];

/// What closes a bead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completion {
    /// A zero exit of the last step.
    Exit,
    /// Its agent, who closes it in the workspace.
    Close,
}

/// A variable a formula declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its value if none is given; without one it is required.
    pub default: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// What a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, each a template.
    Argv(Vec<String>),
    /// A script for `sh`; values reach it only as environment variables.
    Shell(String),
}

/// One phase of a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaStep {
    /// Its name, unique in the formula.
    pub id: String,
    /// What it runs.
    pub program: Program,
    /// A template for what it reads.
    pub stdin: Option<String>,
    /// How long it may take.
    pub timeout: Option<Millis>,
}

/// A formula that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula {
    /// Its name, that of its file.
    pub name: FormulaName,
    /// What it does.
    pub description: Option<String>,
    /// What closes the bead, if the formula says so.
    pub completion: Option<Completion>,
    /// Where it works, if the formula says so.
    pub isolation: Option<Isolation>,
    /// What its job asks for, where the executor is Slurm.
    pub slurm: SlurmRequest,
    /// The variables that may be given.
    pub vars: BTreeMap<String, Variable>,
    /// The phases, in order; at least one.
    pub steps: Vec<FormulaStep>,
    /// What has to go well on the merged tree before it becomes the base.
    pub check: Option<FormulaStep>,
    /// Exit codes that mean "unavailable, try later".
    pub unavailable: Vec<i32>,
    /// After a crash, go on with the step that failed instead of beginning again.
    pub resumes: bool,
}

/// Why there is no such formula.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormulaError {
    /// It is neither in the town nor built in.
    #[error("there is no formula '{name}': write {}, or use one of {}", path.display(), known.join(", "))]
    Unknown {
        /// The name asked for.
        name: FormulaName,
        /// Where it was looked for.
        path: PathBuf,
        /// Names there are.
        known: Vec<String>,
    },
    /// Its file cannot be read.
    #[error("formula {} cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What it says makes no sense.
    #[error("formula '{name}': {problem}")]
    Invalid {
        /// The formula.
        name: FormulaName,
        /// What to correct.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Option<String>,
    description: Option<String>,
    completion: Option<Completion>,
    isolation: Option<Isolation>,
    check: Option<StepTable>,
    #[serde(default)]
    slurm: SlurmTable,
    #[serde(default)]
    vars: BTreeMap<String, VariableTable>,
    #[serde(default)]
    steps: Vec<StepTable>,
    #[serde(default)]
    retry: RetryTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableTable {
    default: Option<toml::Value>,
    required: Option<bool>,
    description: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTable {
    id: Option<String>,
    argv: Option<Vec<String>>,
    shell: Option<String>,
    stdin: Option<String>,
    timeout: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetryTable {
    unavailable: Vec<i32>,
    resume: bool,
}

impl Default for RetryTable {
    fn default() -> Self {
        Self { unavailable: vec![69], resume: false }
    }
}

impl Formula {
    /// The formula of this name for a town: its own, or else a built-in one.
    pub fn find(town: &Path, name: &FormulaName) -> Result<Self, FormulaError> {
        let dir = town.join(".yardmaster/formulas");
        let path = dir.join(format!("{name}.toml"));
        let unreadable = |error| FormulaError::Unreadable { path: path.clone(), error };
        match std::fs::metadata(&path) {
            Ok(meta) if meta.len() > MAX_SIZE => {
                Err(FormulaError::Invalid { name: name.clone(), problem: too_large() })
            }
            // A pipe or a device in its place must not hold up whoever cooks.
            Ok(meta) if !meta.is_file() => Err(unreadable(std::io::Error::other("it is not a file"))),
            Ok(_) => {
                let text = std::fs::read_to_string(&path).map_err(unreadable)?;
                Self::parse(name, &text)
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                match BUILT_IN.iter().find(|(known, _)| *known == name.as_str()) {
                    Some((_, text)) => Self::parse(name, text),
                    None => Err(FormulaError::Unknown { name: name.clone(), path, known: Self::names(town) }),
                }
            }
            Err(error) => Err(unreadable(error)),
        }
    }

    /// The names of all formulas a town can use, in order.
    pub fn names(town: &Path) -> Vec<String> {
        let files = std::fs::read_dir(town.join(".yardmaster/formulas")).into_iter().flatten();
        let own = files.filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            let name = name.strip_suffix(".toml")?;
            FormulaName::parse(name).ok().map(|name| name.to_string())
        });
        let names: BTreeSet<String> =
            own.chain(BUILT_IN.iter().map(|(name, _)| (*name).to_owned())).collect();
        names.into_iter().collect()
    }

    /// Reads the text of a formula file.
    pub fn parse(name: &FormulaName, text: &str) -> Result<Self, FormulaError> {
        check(name, text).map_err(|problem| FormulaError::Invalid { name: name.clone(), problem })
    }
}

fn too_large() -> String {
    "the file is larger than 1 MiB".to_owned()
}

fn check(name: &FormulaName, text: &str) -> Result<Formula, String> {
    if text.len() as u64 > MAX_SIZE {
        return Err(too_large());
    }
    let document: Document = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
    if let Some(said) = document.name.filter(|said| said != name.as_str()) {
        return Err(format!("its file says name = \"{said}\": use the name of the file"));
    }
    if document.steps.is_empty() {
        return Err("it has no steps: add a [[steps]] table with argv or shell".to_owned());
    }
    let mut vars = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for (name, table) in document.vars {
        check_variable_name(&name)?;
        if let Some(other) = taken.insert(variable_name(&name), name.clone()) {
            return Err(format!(
                "the variables '{other}' and '{name}' differ only in ways an environment cannot show"
            ));
        }
        let default = table.default.map(|value| plain(&name, value)).transpose()?;
        let default = match (default, table.required) {
            (Some(_), Some(true)) => {
                return Err(format!("the variable '{name}' is required and has a default: drop one"));
            }
            (None, Some(false)) => Some(String::new()),
            (default, _) => default,
        };
        vars.insert(name, Variable { default, description: table.description });
    }
    let mut ids = BTreeSet::new();
    let mut steps = Vec::new();
    for (index, table) in document.steps.into_iter().enumerate() {
        let step = check_step(index, table)?;
        if !ids.insert(step.id.clone()) {
            return Err(format!("two steps have the id '{}'", step.id));
        }
        steps.push(step);
    }
    if let Some(code) = document.retry.unavailable.iter().find(|code| !(1..=255).contains(*code)) {
        return Err(format!("retry.unavailable holds {code}: exit codes are 1 to 255"));
    }
    Ok(Formula {
        name: name.clone(),
        description: document.description,
        completion: document.completion,
        isolation: document.isolation,
        check: document.check.map(check_of_merge).transpose()?,
        slurm: document.slurm.check()?,
        vars,
        steps,
        unavailable: document.retry.unavailable,
        resumes: document.retry.resume,
    })
}

/// The check of a merged tree is a step of its own, outside the others.
fn check_of_merge(table: StepTable) -> Result<FormulaStep, String> {
    if table.id.is_some() || table.stdin.is_some() {
        return Err("[check] takes argv or shell, and a timeout".to_owned());
    }
    check_step(0, StepTable { id: Some("check".to_owned()), ..table })
}

fn check_step(index: usize, table: StepTable) -> Result<FormulaStep, String> {
    let id = table.id.unwrap_or_else(|| format!("step-{}", index + 1));
    if id.is_empty() || id.len() > 64 || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(format!("step {} has the id {id:?}: use 1 to 64 characters without spaces", index + 1));
    }
    let program = match (table.argv, table.shell) {
        (Some(_), Some(_)) => {
            return Err(format!("step '{id}' has both argv and shell: choose one"));
        }
        (None, None) => return Err(format!("step '{id}' runs nothing: give it argv or shell")),
        (Some(argv), None) if argv.first().is_none_or(String::is_empty) => {
            return Err(format!("step '{id}' has an argv without a program"));
        }
        (Some(argv), None) => Program::Argv(argv),
        (None, Some(script)) => Program::Shell(script),
    };
    let timeout = table.timeout.map(|text| match humantime::parse_duration(&text) {
        Ok(span) if !span.is_zero() => Ok(Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))),
        _ => Err(format!("step '{id}' has the timeout \"{text}\": write it like \"90s\" or \"2h\"")),
    });
    Ok(FormulaStep { timeout: timeout.transpose()?, id, program, stdin: table.stdin })
}

/// Whether a text can be the name of a variable: a letter, then letters, digits, `_` or `-`.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The name of a variable in a worker's environment.
pub(crate) fn variable_name(name: &str) -> String {
    format!("YM_VAR_{}", name.to_ascii_uppercase().replace('-', "_"))
}

fn check_variable_name(name: &str) -> Result<(), String> {
    if !is_variable_name(name) {
        return Err(format!("the variable {name:?} needs a name of letters, digits, '_' and '-'"));
    }
    if BUILT_IN_VARIABLES.contains(&name) {
        return Err(format!("the variable '{name}' is built in: choose another name"));
    }
    Ok(())
}

/// A default may be written as a text, a number or a truth value.
fn plain(name: &str, value: toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => Ok(value.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            Err(format!("the default of the variable '{name}' must be a text or a number"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Formula, String> {
        Formula::parse(&FormulaName::parse("test").expect("a name"), text).map_err(|e| e.to_string())
    }

    #[test]
    fn every_built_in_formula_makes_sense() {
        for (name, text) in BUILT_IN {
            let formula = Formula::parse(&FormulaName::parse(name).expect("a name"), text).expect("valid");
            assert!(formula.description.is_some(), "{name}");
        }
    }

    #[test]
    fn a_formula_is_read_whole() {
        let formula = parse(
            "name = 'test'\ncompletion = 'close'\nisolation = 'worktree'\n\
             [vars.model]\ndefault = 'sonnet'\n[vars.n]\ndefault = 3\n[vars.must]\n\
             [[steps]]\nid = 'work'\nargv = ['a', '{{model}}']\nstdin = '{{prompt}}'\ntimeout = '2h'\n\
             [[steps]]\nshell = 'cargo test'\n[check]\nshell = 'make test'\n[retry]\nunavailable = [69, 70]\n",
        )
        .expect("valid");
        assert_eq!(formula.completion, Some(Completion::Close));
        assert_eq!(formula.isolation, Some(Isolation::Worktree));
        let check = formula.check.expect("a check");
        assert_eq!((check.id.as_str(), check.program), ("check", Program::Shell("make test".into())));
        assert_eq!(formula.vars["n"].default.as_deref(), Some("3"));
        assert_eq!(formula.vars["must"].default, None);
        assert_eq!(formula.steps[0].timeout, Some(Millis::minutes(120)));
        assert_eq!(formula.steps[1].id, "step-2");
        assert_eq!(formula.steps[1].program, Program::Shell("cargo test".into()));
        assert_eq!(formula.unavailable, [69, 70]);
    }

    #[test]
    fn mistakes_are_named() {
        let step = "[[steps]]\nid='a'\nargv=['x']\n";
        for (text, word) in [
            (format!("tiemout='2h'\n{step}"), "tiemout"),
            ("[[steps]]\nargv=['x']\ntiemout='2h'\n".to_owned(), "tiemout"),
            (format!("{step}[retry]\nunavailabel=[1]\n"), "unavailabel"),
            (format!("[vars.x]\ndefalt=1\n{step}"), "defalt"),
            ("description='d'\n".to_owned(), "no steps"),
            ("[[steps]]\nid='a'\nargv=['x']\nshell='y'\n".to_owned(), "both argv and shell"),
            ("[[steps]]\nid='a'\n".to_owned(), "runs nothing"),
            ("[[steps]]\nid='a'\nargv=[]\n".to_owned(), "without a program"),
            (format!("{step}{step}"), "two steps have the id 'a'"),
            (format!("name='other'\n{step}"), "name = \"other\""),
            ("[[steps]]\nid='a'\nargv=['x']\ntimeout='soon'\n".to_owned(), "soon"),
            (format!("[vars.title]\n{step}"), "built in"),
            (format!("[vars.'a b']\n{step}"), "a b"),
            (format!("[vars.a-b]\n[vars.a_b]\n{step}"), "environment"),
            (format!("{step}[retry]\nunavailable=[0]\n"), "1 to 255"),
            (format!("completion='never'\n{step}"), "never"),
            (format!("isolation='chroot'\n{step}"), "chroot"),
            (format!("{step}[check]\ntimeout='1m'\n"), "'check' runs nothing"),
            (format!("{step}[check]\nargv=['x']\nstdin='y'\n"), "[check]"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(word), "{error} should name {word}");
        }
        assert!(parse(&" ".repeat(2 << 20)).expect_err("too large").contains("1 MiB"));
    }

    #[test]
    fn a_towns_own_formula_comes_first() {
        let town = tempfile::tempdir().expect("temporary directory");
        let demo = FormulaName::parse("demo").expect("a name");
        assert_eq!(Formula::find(town.path(), &demo).expect("built in").steps[0].id, "work");
        let dir = town.path().join(".yardmaster/formulas");
        std::fs::create_dir_all(&dir).expect("created");
        std::fs::write(dir.join("demo.toml"), "[[steps]]\nid='own'\nargv=['x']\n").expect("written");
        assert_eq!(Formula::find(town.path(), &demo).expect("found").steps[0].id, "own");
        let missing = Formula::find(town.path(), &FormulaName::parse("nope").expect("a name"));
        let text = missing.expect_err("missing").to_string();
        assert!(text.contains("nope.toml") && text.contains("mol-polecat-work"), "{text}");
    }
}

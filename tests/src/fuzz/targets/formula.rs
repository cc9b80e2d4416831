//! Formulas: texts of a bead become arguments, standard input and environment as they are, once, and never part of a script.

use std::collections::BTreeMap;

use yard_engine::FormulaName;
use yard_engine::settings::Isolation;
use yard_workers::{CookInput, Formula, Presets, Program, cook};

pub(super) const WORDS: &[&str] = &[
    "[[steps]]\n",
    "id = 'a'\n",
    "argv = ['x', '{{title}}']\n",
    "shell = 'echo \"$YM_TITLE\"'\n",
    "stdin = '{{prompt}}'\n",
    "timeout = '2h'\n",
    "[vars.model]\n",
    "default = 'sonnet'\n",
    "required = false\n",
    "{{agent...}}",
    "{{model}}",
    "{{prompt_file}}",
    "{{description}}",
    "{{",
    "}}",
    "[retry]\nunavailable = [69]\n",
    "[check]\nshell = 'true'\n",
    "isolation = 'worktree'\n",
    "completion = 'close'\n",
];

pub(super) fn run(input: &[u8]) {
    let parts = super::texts(input);
    let part = |nth: usize| parts.get(nth).map_or("", String::as_str);
    let name = FormulaName::parse("fuzz").expect("a name");
    let Ok(formula) = Formula::parse(&name, part(0)) else { return };
    let given = formula.vars.keys().map(|name| (name.clone(), part(3).to_owned()));
    let vars: BTreeMap<String, String> = given.collect();
    let agent = ["claude".to_owned()];
    let number = super::number(input);
    let cooked = cook(
        &formula,
        &CookInput {
            vars: &vars,
            bead: "y-1",
            title: part(1),
            description: part(2),
            labels: &[part(4).to_owned()],
            rig: "yard",
            args: part(3),
            agent_command: (!number.is_multiple_of(3)).then_some(&agent),
            presets: &Presets::built_in(),
            workspace: number.is_multiple_of(2),
            isolation: Isolation::None,
        },
    );
    let Ok(cooked) = cooked else { return };
    assert_eq!(cooked.steps.len(), formula.steps.len());
    for (step, written) in cooked.steps.iter().zip(&formula.steps) {
        assert!(step.argv.iter().all(|word| !word.contains('\0') && word.len() <= 128 * 1024), "{step:?}");
        if let Program::Shell(script) = &written.program {
            assert_eq!(step.argv, ["sh", "-c", script], "a script is run as it is written");
        }
    }
    assert!(cooked.env.iter().all(|(name, value)| !name.contains(['\0', '=']) && !value.contains('\0')));
}

//! Cooking, seen from outside.

use std::collections::BTreeMap;

use yard_engine::FormulaName;

use super::*;

struct Case {
    vars: BTreeMap<String, String>,
    agent: Option<Vec<String>>,
    title: String,
    description: String,
    workspace: bool,
    isolation: Isolation,
}

fn case() -> Case {
    Case {
        vars: BTreeMap::new(),
        agent: None,
        title: "Mend the fence".into(),
        description: "It leans.".into(),
        workspace: false,
        isolation: Isolation::None,
    }
}

impl Case {
    fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    fn cook(&self, formula: &str) -> Result<Cooked, CookError> {
        let name = FormulaName::parse("test").expect("a name");
        let formula = Formula::parse(&name, formula).expect("a formula");
        let input = CookInput {
            vars: &self.vars,
            bead: "gt-abc",
            title: &self.title,
            description: &self.description,
            labels: &["a".into(), "b".into()],
            rig: "yard",
            args: "be quick",
            agent_command: self.agent.as_deref(),
            presets: &Presets::built_in(),
            workspace: self.workspace,
            isolation: self.isolation,
        };
        cook(&formula, &input)
    }
}

fn value<'a>(cooked: &'a Cooked, name: &str) -> &'a str {
    cooked.env.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
}

#[test]
fn values_are_filled_in_once() {
    let formula = "[vars.x]\n[[steps]]\nargv=['p', '{{x}}-{{ bead }}', '{{.Names}}', 'a{{b']\n";
    let cooked = case().var("x", "{{title}} $(rm -rf /)").cook(formula).expect("cooked");
    assert_eq!(cooked.steps[0].argv, ["p", "{{title}} $(rm -rf /)-gt-abc", "{{.Names}}", "a{{b"]);
    assert_eq!(value(&cooked, "YM_VAR_X"), "{{title}} $(rm -rf /)");
    assert_eq!(value(&cooked, "YM_TITLE"), "Mend the fence");
    assert_eq!(value(&cooked, "YM_LABELS"), "a,b");
    assert_eq!(value(&cooked, "YM_ARGS"), "be quick");
    assert_eq!(cooked.unavailable_codes, [69]);
}

#[test]
fn the_prompt_holds_title_description_and_args() {
    let cooked = case().cook("[[steps]]\nargv=['p']\nstdin='{{prompt}}'\n").expect("cooked");
    assert_eq!(cooked.steps[0].stdin.as_deref(), Some("Mend the fence (gt-abc)\n\nIt leans.\n\nbe quick\n"));
}

#[test]
fn the_prompt_of_a_workspace_bead_says_that_its_tracker_closes_it() {
    let mut case = case();
    case.workspace = true;
    let cooked = case.cook("[[steps]]\nargv=['p']\nstdin='{{prompt}}'\n").expect("cooked");
    let prompt = cooked.steps[0].stdin.as_deref().expect("a prompt");
    assert!(
        prompt.contains("be quick\n\nWhen the work is done") && prompt.contains("br close gt-abc"),
        "{prompt}"
    );
}

#[test]
fn the_agent_becomes_several_arguments() {
    let formula = "[[steps]]\nargv=['nice', '{{agent...}}', '--', '{{bead}}']\n";
    let error = case().cook(formula).expect_err("no agent").to_string();
    assert!(error.contains("ym config set worker.agent claude"), "{error}");
    let mut with = case();
    with.agent = Some(vec!["claude".into(), "-p".into(), "{{title}}".into()]);
    let cooked = with.cook(formula).expect("cooked");
    assert_eq!(cooked.steps[0].argv, ["nice", "claude", "-p", "{{title}}", "--", "gt-abc"]);
    let inside = with.cook("[[steps]]\nargv=['x={{agent...}}']\n");
    assert_eq!(inside, Err(CookError::AgentInside("step-1".into())));
}

#[test]
fn unknown_and_missing_variables_are_named() {
    let formula = "[vars.model]\n[[steps]]\nid='work'\nargv=['p', '{{modle}}']\n";
    assert_eq!(case().cook(formula), Err(CookError::Missing("model".into())));
    let error = case().var("model", "m").cook(formula).expect_err("a typo").to_string();
    assert!(error.contains("'modle'") && error.contains("model, prompt"), "{error}");
    let error = case().var("model", "m").var("other", "x").cook(formula).expect_err("unknown").to_string();
    assert!(error.contains("'other'") && error.contains("it has model"), "{error}");
}

#[test]
fn a_shell_gets_values_only_from_its_environment() {
    let cooked = case()
        .var("n", "'; touch /tmp/x; '")
        .cook("[vars.n]\n[[steps]]\nshell='echo \"$YM_VAR_N\" {{.X}}'\n")
        .expect("cooked");
    assert_eq!(cooked.steps[0].argv, ["sh", "-c", "echo \"$YM_VAR_N\" {{.X}}"]);
    let error = case().cook("[[steps]]\nshell='echo {{title}}'\n").expect_err("a template").to_string();
    assert!(error.contains("\"$YM_TITLE\" instead of {{title}}"), "{error}");
}

#[test]
fn what_no_program_can_be_given_is_refused() {
    let formula = "[vars.x]\ndefault=''\n[[steps]]\nargv=['p','{{description}}']\n";
    assert!(matches!(case().var("x", "a\0b").cook(formula), Err(CookError::Nul(_))));
    assert!(matches!(case().var("x", &"y".repeat(200_000)).cook(formula), Err(CookError::TooLong { .. })));
    let mut long = case();
    long.description = "ä".repeat(100_000);
    let error = long.cook(formula).expect_err("too long").to_string();
    assert!(error.contains("stdin"), "{error}");
    let cooked = long.cook("[[steps]]\nargv=['p']\nstdin='{{description}}'\n").expect("cooked");
    assert_eq!(cooked.steps[0].stdin.as_ref().map(String::len), Some(200_000));
    assert!(value(&cooked, "YM_DESCRIPTION").ends_with(CUT));
    long.title = "a\0b".into();
    assert!(matches!(long.cook("[[steps]]\nargv=['p']\n"), Err(CookError::Nul(_))));
}

#[test]
fn what_closes_a_bead_depends_on_where_it_lives() {
    let plain = "[[steps]]\nargv=['p']\n";
    let mut case = case();
    assert_eq!(case.cook(plain).expect("cooked").completion, Completion::Exit);
    case.workspace = true;
    assert_eq!(case.cook(plain).expect("cooked").completion, Completion::Close);
    let exit = format!("completion='exit'\n{plain}");
    assert_eq!(case.cook(&exit), Err(CookError::ExitInWorkspace));
}

#[test]
fn a_formula_says_where_it_works_and_what_checks_a_merge() {
    let plain = "[[steps]]\nargv=['p']\n";
    let mut case = case();
    assert_eq!(case.cook(plain).expect("cooked").isolation, Isolation::None);
    case.isolation = Isolation::Worktree;
    assert_eq!(case.cook(plain).expect("cooked").isolation, Isolation::Worktree);
    let cooked = case.cook(&format!("isolation='none'\n{plain}[check]\nargv=['test', '{{{{bead}}}}']\n"));
    let cooked = cooked.expect("cooked");
    assert_eq!(cooked.isolation, Isolation::None);
    assert_eq!(cooked.check.expect("a check").argv, ["test", "gt-abc"]);
}

fn agent_case(words: &[&str]) -> Case {
    Case { agent: Some(words.iter().map(|word| (*word).to_owned()).collect()), ..case() }
}

const WORK: &str = "[[steps]]\nargv=['{{agent...}}']\nstdin='{{prompt}}'\n";

#[test]
fn a_name_alone_means_the_whole_preset() {
    for (name, first, last, on_stdin) in [
        ("claude", "claude", "acceptEdits", true),
        ("codex", "codex", "-", true),
        ("gemini", "gemini", "auto_edit", true),
        ("opencode", "opencode", "json", true),
        ("aider", "aider", "/dev/stdin", true),
        ("/opt/bin/codex", "/opt/bin/codex", "-", true),
        ("cat", "cat", "cat", true),
    ] {
        let step = agent_case(&[name]).cook(WORK).expect(name).steps.remove(0);
        assert_eq!(
            (step.argv[0].as_str(), step.argv.last().map(String::as_str)),
            (first, Some(last)),
            "{name}"
        );
        assert_eq!(step.stdin.is_some_and(|text| text.contains("It leans.")), on_stdin, "{name}");
        assert_eq!(step.agent.is_some(), name != "cat");
    }
}

#[test]
fn several_words_are_used_as_they_stand_and_the_task_is_added() {
    let argv = |words: &[&str]| {
        let step = agent_case(words).cook(WORK).expect("cooked").steps.remove(0);
        (step.argv.join(" "), step.tail)
    };
    assert_eq!(argv(&["claude", "-p"]), ("claude -p".to_owned(), 0));
    assert_eq!(argv(&["codex", "exec", "-m", "o3"]), ("codex exec -m o3 -".to_owned(), 1));
    assert_eq!(argv(&["codex", "exec", "-"]), ("codex exec -".to_owned(), 1));
    assert_eq!(argv(&["aider", "--model", "x"]), ("aider --model x --message-file /dev/stdin".to_owned(), 2));
    assert_eq!(argv(&["aider", "-f", "{{prompt_file}}"]), ("aider -f /dev/stdin".to_owned(), 0));
    let formula = "[[steps]]\nargv=['{{agent...}}', '--color={{rig}}']\nstdin='{{prompt}}'\n";
    let step = agent_case(&["codex"]).cook(formula).expect("cooked").steps.remove(0);
    assert!(step.argv.ends_with(&["--color=yard".to_owned(), "-".to_owned()]), "{:?}", step.argv);
}

#[test]
fn an_agent_may_take_the_task_as_an_argument() {
    let formula = "[[steps]]\nargv=['nice', '{{agent...}}', '{{bead}}']\nstdin='Review: {{title}}'\n";
    let step = agent_case(&["mine", "--do={{prompt}}"]).cook(formula).expect("cooked").steps.remove(0);
    assert_eq!(step.argv, ["nice", "mine", "--do=Review: Mend the fence", "gt-abc"]);
    assert_eq!(step.stdin, None, "once is enough");
    let long = Case { description: "x".repeat(200_000), ..agent_case(&["mine", "{{prompt}}"]) };
    let error = long.cook(WORK).expect_err("too long").to_string();
    assert!(error.contains("128 KiB"), "{error}");
    let file = Case { description: "x".repeat(200_000), ..agent_case(&["mine", "{{prompt_file}}"]) };
    assert!(file.cook(WORK).is_ok());
}

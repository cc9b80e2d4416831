//! The API against its own description: schemathesis makes requests of every kind from it, good and bad, and looks
//! whether what comes back is what it promises.

use std::process::Command;

use super::serving;

#[test]
fn the_api_is_what_its_description_says() {
    let python = yard_tests::town::tool_python();
    let (_town, http) = serving(&[("http.max_queue", "40"), ("http.max_per_agent", "20")]);
    let examples = if std::env::var_os("YM_TEST_FULL").is_some() { "200" } else { "40" };
    let output = Command::new(python)
        .args(["-m", "schemathesis.cli", "run"])
        .arg(format!("http://{}/openapi.json", http.address()))
        .args(["--header", &format!("Authorization: {}", http.authorization())])
        // What a description cannot say: which formulas, tasks and addresses there are.
        .args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"])
        // What waits for things to happen: the tests of streams and of agents see to these.
        .args(["--exclude-path", "/events", "--exclude-path", "/agents/{name}/inbox"])
        // What stays no HTTP.
        .args(["--exclude-path", "/socket"])
        .args(["--max-examples", examples])
        .args(["--seed", "1", "--no-color", "--warnings", "off", "--generation-database", "none"])
        .output()
        .expect("schemathesis can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let cases = said.lines().find_map(|line| line.trim().split_once(" generated, ")?.0.parse::<u32>().ok());
    assert!(cases.is_some_and(|cases| cases > 200), "{said}");
}

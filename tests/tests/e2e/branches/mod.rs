//! Worktrees and merges in real git repositories.

mod crashes;
mod merging;
mod offers;
mod worktrees;

use yard_tests::repo::Repo;

/// A bead that adds a part to the repository, which needs the parts of the beads it depends on.
pub(crate) fn part(repo: &Repo, id: &str, needs: &[&str]) {
    let calls: Vec<String> = needs.iter().map(|need| format!("part_{}; ", name(need))).collect();
    let calls = calls.concat();
    let script = format!("printf 'part_{0}() {{ {calls}:; }}\\n' > parts/{0}.sh", name(id));
    let needs: Vec<String> =
        needs.iter().flat_map(|need| ["--needs".to_owned(), (*need).to_owned()]).collect();
    let title = format!("part {id}");
    let mut words: Vec<&str> = vec!["bead", "add", &title, "--id", id];
    words.extend(needs.iter().map(String::as_str));
    words.extend(["--", "sh", "-c", &script]);
    repo.town.run(words).ok();
}

fn name(id: &str) -> String {
    id.replace('-', "_")
}

//! What a worker is doing now, in one line: which step of how many, and what it says or wrote last.

use yard_engine::dispatch::Dispatch;

use super::status::RunningView;

/// `step 2 of 3 · check · running the tests`; the last finished step where nothing else is known.
pub fn doing(dispatch: &Dispatch) -> String {
    let step = dispatch
        .running_step()
        .map(|index| (index + 1, dispatch.steps.len(), dispatch.steps[index].as_str()));
    words(step, dispatch.doing(), dispatch.step.as_deref())
}

impl RunningView {
    /// The same of a view.
    pub fn doing(&self) -> String {
        let step = self.step_number.zip(self.steps).zip(self.current_step.as_deref());
        let step = step.map(|((number, steps), name)| (number, steps, name));
        words(step, self.progress.as_deref().or(self.last_line.as_deref()), None)
    }
}

fn words(step: Option<(usize, usize, &str)>, says: Option<&str>, finished: Option<&str>) -> String {
    let step = step.map(|(number, steps, name)| format!("step {number} of {steps} · {name}"));
    match (step, says) {
        (Some(step), Some(says)) => format!("{step} · {says}"),
        (Some(step), None) => step,
        (None, says) => says.or(finished).unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn step_and_last_words_stand_in_one_line() {
        assert_eq!(words(Some((2, 3, "check")), Some("ok"), Some("work")), "step 2 of 3 · check · ok");
        assert_eq!(words(Some((1, 2, "work")), None, None), "step 1 of 2 · work");
        assert_eq!(words(None, Some("reading"), Some("work")), "reading");
        assert_eq!(words(None, None, Some("work")), "work");
        assert_eq!(words(None, None, None), "");
    }
}

//! Surveys: requests to other nodes that wait for answers.

use std::collections::{HashMap, HashSet};

use tokio::sync::mpsc;

use super::message::Answer;

/// The maximum number of surveys in progress.
const SURVEYS_MAX: usize = 1_024;

/// The maximum number of queued parts of answers per survey.
const PARTS_MAX: usize = 4_096;

/// The surveys of a node that are in progress.
#[derive(Debug, Default)]
pub(crate) struct Surveys {
    numbers: u64,
    open: HashMap<u64, Survey>,
}

#[derive(Debug)]
struct Survey {
    missing: HashSet<String>,
    parts: mpsc::Sender<Answer>,
}

/// There are too many surveys in progress.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{SURVEYS_MAX} surveys of other nodes are already in progress")]
pub(crate) struct TooMany;

impl Surveys {
    /// Opens a survey of `nodes`. The answers arrive at the receiver, which is closed after the
    /// last one.
    pub(crate) fn open(
        &mut self,
        nodes: Vec<String>,
    ) -> Result<(u64, mpsc::Receiver<Answer>), TooMany> {
        if self.open.len() == SURVEYS_MAX {
            return Err(TooMany);
        }
        self.numbers += 1;
        let (parts, receiver) = mpsc::channel(PARTS_MAX);
        if !nodes.is_empty() {
            let missing = nodes.into_iter().collect();
            self.open.insert(self.numbers, Survey { missing, parts });
        }
        Ok((self.numbers, receiver))
    }

    /// Handles a part of an answer. It is dropped if its survey has ended.
    pub(crate) fn handle_reply(&mut self, number: u64, from: &str, is_last: bool, answer: Answer) {
        let Some(survey) = self.open.get_mut(&number) else {
            return;
        };
        // Parts beyond the limit are dropped, as if the node had not answered.
        _ = survey.parts.try_send(answer);
        if is_last {
            survey.missing.remove(from);
        }
        if survey.missing.is_empty() {
            self.open.remove(&number);
        }
    }

    /// Stops waiting for a node that has left.
    pub(crate) fn handle_goodbye(&mut self, node: &str) {
        self.open.retain(|_, survey| {
            survey.missing.remove(node);
            !survey.missing.is_empty()
        });
    }

    /// Ends a survey, even if answers are missing.
    pub(crate) fn close(&mut self, number: u64) {
        self.open.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, SURVEYS_MAX, Surveys};

    fn nodes(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_survey_ends_with_the_last_answer_of_the_last_node() {
        let mut surveys = Surveys::default();
        let (number, mut answers) = surveys.open(nodes(&["a", "b", "c"])).unwrap();
        surveys.handle_reply(number, "a", false, Answer::Count(1));
        surveys.handle_reply(number, "a", true, Answer::Count(2));
        surveys.handle_goodbye("c");
        surveys.handle_reply(number, "b", true, Answer::Count(3));
        surveys.handle_reply(number, "b", true, Answer::Count(4));
        let mut counts = Vec::new();
        while let Some(Answer::Count(count)) = answers.recv().await {
            counts.push(count);
        }
        assert_eq!(counts, [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_survey_of_nobody_is_over() {
        let (_, mut answers) = Surveys::default().open(Vec::new()).unwrap();
        assert!(answers.recv().await.is_none());
    }

    #[test]
    fn surveys_are_bounded() {
        let mut surveys = Surveys::default();
        let open: Vec<_> = (0..SURVEYS_MAX)
            .map(|_| surveys.open(nodes(&["a"])).unwrap())
            .collect();
        let error = surveys.open(nodes(&["a"])).unwrap_err();
        assert!(error.to_string().contains("1024"), "{error}");
        surveys.close(open[0].0);
        assert!(surveys.open(nodes(&["a"])).is_ok());
    }
}

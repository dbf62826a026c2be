//! Surveys: requests to other nodes that wait for answers.

use std::collections::{HashMap, HashSet};

use tokio::sync::mpsc;

use super::message::Answer;

/// The maximum number of surveys in progress.
const SURVEYS_MAX: usize = 1_024;

/// The maximum number of requests of clients that poll, which wait for other nodes.
const POLLS_MAX: usize = 65_536;

/// The maximum number of queued parts of answers per survey.
const PARTS_MAX: usize = 4_096;

/// The surveys of a node that are in progress.
#[derive(Debug, Default)]
pub(crate) struct Surveys {
    numbers: u64,
    open: HashMap<u64, Survey>,
    /// The number of open surveys of each kind.
    counts: [usize; 2],
}

/// What a survey is for. Each kind has its own limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SurveyKind {
    /// A request of a client that polls, which can take as long as the client waits.
    Poll,
    /// A question that is answered at once.
    Question,
}

#[derive(Debug)]
struct Survey {
    kind: SurveyKind,
    missing: HashSet<String>,
    parts: mpsc::Sender<Answer>,
}

/// There are too many surveys in progress.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{count_max} surveys of other nodes are already in progress")]
pub(crate) struct TooMany {
    count_max: usize,
}

impl SurveyKind {
    const fn count_max(self) -> usize {
        match self {
            Self::Poll => POLLS_MAX,
            Self::Question => SURVEYS_MAX,
        }
    }
}

impl Surveys {
    /// Opens a survey of `nodes`. The answers arrive at the receiver, which is closed after the
    /// last one.
    pub(crate) fn open(
        &mut self,
        nodes: Vec<String>,
        kind: SurveyKind,
    ) -> Result<(u64, mpsc::Receiver<Answer>), TooMany> {
        let count_max = kind.count_max();
        if self.counts[kind as usize] == count_max {
            return Err(TooMany { count_max });
        }
        self.numbers += 1;
        let (parts, receiver) = mpsc::channel(PARTS_MAX);
        if !nodes.is_empty() {
            let missing = nodes.into_iter().collect();
            self.counts[kind as usize] += 1;
            let survey = Survey {
                kind,
                missing,
                parts,
            };
            self.open.insert(self.numbers, survey);
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
            self.close(number);
        }
    }

    /// Stops waiting for a node that has left.
    pub(crate) fn handle_goodbye(&mut self, node: &str) {
        let counts = &mut self.counts;
        self.open.retain(|_, survey| {
            survey.missing.remove(node);
            let is_open = !survey.missing.is_empty();
            counts[survey.kind as usize] -= usize::from(!is_open);
            is_open
        });
    }

    /// Ends a survey, even if answers are missing.
    pub(crate) fn close(&mut self, number: u64) {
        if let Some(survey) = self.open.remove(&number) {
            self.counts[survey.kind as usize] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, POLLS_MAX, SURVEYS_MAX, SurveyKind, Surveys};

    fn nodes(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_survey_ends_with_the_last_answer_of_the_last_node() {
        let mut surveys = Surveys::default();
        let opened = surveys.open(nodes(&["a", "b", "c"]), SurveyKind::Question);
        let (number, mut answers) = opened.unwrap();
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
        let (_, mut answers) = Surveys::default()
            .open(Vec::new(), SurveyKind::Question)
            .unwrap();
        assert!(answers.recv().await.is_none());
    }

    #[test]
    fn surveys_of_each_kind_are_bounded() {
        for (kind, count_max) in [
            (SurveyKind::Question, SURVEYS_MAX),
            (SurveyKind::Poll, POLLS_MAX),
        ] {
            let mut surveys = Surveys::default();
            let mut numbers = Vec::new();
            let mut answers = Vec::new();
            for _ in 0..count_max {
                let (number, parts) = surveys.open(nodes(&["a"]), kind).unwrap();
                numbers.push(number);
                answers.push(parts);
            }
            let error = surveys.open(nodes(&["a"]), kind).unwrap_err();
            assert!(
                error.to_string().contains(&count_max.to_string()),
                "{error}"
            );
            surveys.close(numbers[0]);
            surveys.close(numbers[0]);
            assert!(surveys.open(nodes(&["a"]), kind).is_ok());
            assert!(surveys.open(nodes(&["a"]), kind).is_err());
            surveys.handle_reply(numbers[1], "a", true, Answer::Count(1));
            assert!(surveys.open(nodes(&["b"]), kind).is_ok());
            surveys.handle_goodbye("a");
            assert_eq!(surveys.counts.iter().sum::<usize>(), 1);
        }
    }
}

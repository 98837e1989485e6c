//! The lists of expected failures, and what a report says against them.
//!
//! One case per line: its full name, ` # `, the reason. A list without a
//! reason on each line, or with a case twice, is itself a failure. A reason
//! that begins with `without CAP_SYS_RESOURCE: ` counts on such nodes only,
//! so that the list is true on others too.

use std::{collections::BTreeMap, fmt};

use super::report::{Case, Fate, Report};
use crate::failure::{Failure, Outcome};

/// Begins a reason that holds on nodes whose engines lack this capability.
const WITHOUT_SYS_RESOURCE: &str = "without CAP_SYS_RESOURCE: ";

/// How much of a failure's message is shown.
const SHOWN_LINES: usize = 6;

/// Case names with the reason for which each may fail.
pub(super) struct Expected(BTreeMap<String, String>);

impl Expected {
    /// `sys_resource`: the engines here have CAP_SYS_RESOURCE.
    pub(super) fn parse(text: &str, sys_resource: bool) -> Outcome<Self> {
        let mut cases = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, reason) = line.rsplit_once(" # ").unwrap_or((line, ""));
            if reason.trim().is_empty() {
                return Err(Failure::new(format!(
                    "line {number} gives no reason after ` # `"
                )));
            }
            if cases
                .insert(name.trim().to_owned(), reason.trim().to_owned())
                .is_some()
            {
                return Err(Failure::new(format!("line {number} lists a case again")));
            }
        }
        if sys_resource {
            cases.retain(|_, reason: &mut String| !reason.starts_with(WITHOUT_SYS_RESOURCE));
        }
        Ok(Self(cases))
    }

    /// `partly`: only some cases ran, so a listed one that is missing says nothing.
    pub(super) fn compare(&self, report: &Report, partly: bool) -> Verdict {
        let mut verdict = Verdict {
            around: report.around.clone(),
            ..Verdict::default()
        };
        let mut seen: Vec<&str> = Vec::new();
        for case in &report.cases {
            let listed = self.0.contains_key(&case.name);
            seen.push(&case.name);
            verdict.seconds += case.seconds;
            match (case.fate, listed) {
                (Fate::Passed, false) => verdict.passed += 1,
                (Fate::Passed, true) => verdict.to_strike.push(case.name.clone()),
                (Fate::Failed, true) => verdict.expected += 1,
                (Fate::Failed, false) => verdict.unexpected.push(shown(case)),
                (Fate::Skipped, true) if !partly => verdict.to_strike.push(case.name.clone()),
                (Fate::Skipped, _) => verdict.skipped += 1,
            }
        }
        if !partly {
            let unknown = self.0.keys().filter(|name| !seen.contains(&name.as_str()));
            verdict.unknown.extend(unknown.cloned());
        }
        verdict
    }
}

fn shown(case: &Case) -> String {
    let lines: Vec<String> = case
        .message
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(SHOWN_LINES)
        .map(|line| format!("          {}", line.chars().take(300).collect::<String>()))
        .collect();
    format!(
        "{} ({:.1} s)\n{}",
        case.name,
        case.seconds,
        lines.join("\n")
    )
}

/// A report held against a list.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    passed: usize,
    skipped: usize,
    expected: usize,
    /// Failed and not listed.
    unexpected: Vec<String>,
    /// Listed but passed, or skipped: the line must go.
    to_strike: Vec<String>,
    /// Listed and not a case of the suite.
    unknown: Vec<String>,
    /// Failed outside of any case.
    around: Vec<String>,
    seconds: f64,
}

impl Verdict {
    pub(super) fn holds(&self) -> bool {
        let complaints = [
            &self.unexpected,
            &self.to_strike,
            &self.unknown,
            &self.around,
        ];
        complaints.iter().all(|list| list.is_empty()) && self.passed > 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("FAILED, not expected", &self.unexpected),
            (
                "listed as expected failures but did not fail: strike them",
                &self.to_strike,
            ),
            ("listed but unknown to the suite", &self.unknown),
            ("failed around the cases", &self.around),
        ];
        for (title, list) in lists {
            if !list.is_empty() {
                writeln!(f, "    {title}:")?;
            }
            for line in list {
                writeln!(f, "      - {line}")?;
            }
        }
        writeln!(
            f,
            "    conformance: {} passed, {} failed, {} skipped, {} failed as expected; cases took {:.0} s",
            self.passed + self.to_strike.len(),
            self.unexpected.len() + self.around.len(),
            self.skipped,
            self.expected,
            self.seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cases: &[(&str, Fate)]) -> Report {
        let cases = cases.iter().map(|(name, fate)| Case {
            name: (*name).to_owned(),
            fate: *fate,
            message: "first\n\nsecond".to_owned(),
            seconds: 0.5,
        });
        Report {
            cases: cases.collect(),
            around: Vec::new(),
        }
    }

    #[test]
    fn lists_need_reasons_and_no_twins() {
        let cases = [
            ("comments and blanks", "# why\n\na case # a reason\n", true),
            ("no reason", "a case\n", false),
            ("empty reason", "a case # \n", false),
            ("twice", "a # x\na # y\n", false),
        ];
        for (name, text, good) in cases {
            assert_eq!(Expected::parse(text, false).is_ok(), good, "{name}");
        }
    }

    #[test]
    fn a_report_is_held_against_the_list() {
        use Fate::{Failed, Passed, Skipped};
        type Row<'a> = (&'a str, &'a str, &'a [(&'a str, Fate)], bool, bool);
        let cases: [Row<'_>; 7] = [
            (
                "all well",
                "",
                &[("a", Passed), ("b", Skipped)],
                false,
                true,
            ),
            (
                "a failure",
                "",
                &[("a", Passed), ("b", Failed)],
                false,
                false,
            ),
            (
                "an expected failure",
                "b # r",
                &[("a", Passed), ("b", Failed)],
                false,
                true,
            ),
            (
                "an expected failure passes",
                "a # r",
                &[("a", Passed), ("c", Passed)],
                false,
                false,
            ),
            (
                "an expected failure skips",
                "b # r",
                &[("a", Passed), ("b", Skipped)],
                false,
                false,
            ),
            (
                "not run, focused",
                "b # r",
                &[("a", Passed), ("b", Skipped)],
                true,
                true,
            ),
            (
                "a case that is not there",
                "z # r",
                &[("a", Passed)],
                false,
                false,
            ),
        ];
        for (name, list, ran, partly, holds) in cases {
            let expected = Expected::parse(list, false).unwrap();
            assert_eq!(
                expected.compare(&report(ran), partly).holds(),
                holds,
                "{name}"
            );
        }
    }

    #[test]
    fn a_reason_of_some_nodes_counts_on_those() {
        let list = "a # without CAP_SYS_RESOURCE: the engine asks for it";
        for (sys_resource, fate, holds) in [
            (false, Fate::Failed, true),
            (false, Fate::Passed, false),
            (true, Fate::Failed, false),
            (true, Fate::Passed, true),
        ] {
            let expected = Expected::parse(list, sys_resource).unwrap();
            let ran = report(&[("a", fate), ("b", Fate::Passed)]);
            assert_eq!(
                expected.compare(&ran, false).holds(),
                holds,
                "{sys_resource} {fate:?}"
            );
        }
    }

    #[test]
    fn a_run_in_which_nothing_passed_does_not_hold() {
        let none = Expected::parse("", false).unwrap();
        assert!(!none.compare(&report(&[]), false).holds());
    }
}

//! Reading the suite's JSON report: a name, an outcome and a message per case.

use serde_json::Value;

use crate::failure::{Context, Outcome};

/// What became of one case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Passed,
    Failed,
    Skipped,
}

/// One case of the suite.
#[derive(Debug)]
pub(super) struct Case {
    /// The texts of the case and of the groups around it, joined by spaces.
    pub(super) name: String,
    pub(super) fate: Fate,
    /// Why it failed; empty otherwise.
    pub(super) message: String,
    pub(super) seconds: f64,
}

/// All cases, and what failed outside of any case.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) cases: Vec<Case>,
    /// Failures of the suite's own set-up and tear-down.
    pub(super) around: Vec<String>,
}

impl Report {
    pub(super) fn parse(bytes: &[u8]) -> Outcome<Self> {
        let suites: Vec<Value> = serde_json::from_slice(bytes).context("reading the report")?;
        let mut report = Self::default();
        for suite in &suites {
            let specs = suite.get("SpecReports").and_then(Value::as_array);
            for spec in specs.into_iter().flatten() {
                report.add(spec);
            }
            let reasons = suite
                .get("SpecialSuiteFailureReasons")
                .and_then(Value::as_array);
            let reasons = reasons.into_iter().flatten().filter_map(Value::as_str);
            report.around.extend(reasons.map(String::from));
        }
        Ok(report)
    }

    fn add(&mut self, spec: &Value) {
        let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = spec
            .pointer("/Failure/Message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let fate = match text("State") {
            "passed" => Fate::Passed,
            "skipped" | "pending" => Fate::Skipped,
            _ => Fate::Failed,
        };
        if text("LeafNodeType") != "It" {
            if fate == Fate::Failed {
                self.around
                    .push(format!("{}: {message}", text("LeafNodeType")));
            }
            return;
        }
        let groups = spec
            .get("ContainerHierarchyTexts")
            .and_then(Value::as_array);
        let mut words: Vec<&str> = groups
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        words.push(text("LeafNodeText"));
        let nanoseconds = spec
            .get("RunTime")
            .and_then(Value::as_f64)
            .unwrap_or_default();
        self.cases.push(Case {
            name: words.join(" "),
            fate,
            message: message.to_owned(),
            seconds: nanoseconds / 1e9,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let text = r#"[{"SpecialSuiteFailureReasons": ["Interrupted by Timeout"], "SpecReports": [
            {"LeafNodeType": "BeforeSuite", "State": "failed", "Failure": {"Message": "no socket"}},
            {"LeafNodeType": "It", "State": "passed", "RunTime": 1500000000,
             "ContainerHierarchyTexts": ["[k8s.io] Image", "pull"], "LeafNodeText": "works"},
            {"LeafNodeType": "It", "State": "panicked", "ContainerHierarchyTexts": null,
             "LeafNodeText": "b", "Failure": {"Message": "boom"}},
            {"LeafNodeType": "It", "State": "skipped", "LeafNodeText": "c"}]}]"#;
        let report = Report::parse(text.as_bytes()).unwrap();
        let seen: Vec<(&str, Fate, &str)> = report
            .cases
            .iter()
            .map(|case| (case.name.as_str(), case.fate, case.message.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("[k8s.io] Image pull works", Fate::Passed, ""),
                ("b", Fate::Failed, "boom"),
                ("c", Fate::Skipped, ""),
            ]
        );
        assert_eq!(
            report.around,
            ["BeforeSuite: no socket", "Interrupted by Timeout"]
        );
        assert!((report.cases.first().unwrap().seconds - 1.5).abs() < 1e-9);
    }
}

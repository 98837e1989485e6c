//! What doctor found: one row of its answer, and all of them.

use serde::Serialize;

/// How a thing that was looked at is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    /// In order.
    Ok,
    /// Pods run, and some of what they may ask for does not work as they expect.
    Warn,
    /// Pods do not run.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// How it is.
    pub grade: Grade,
    /// What was looked at.
    pub check: &'static str,
    /// What is so.
    pub detail: String,
    /// What to do about it; there unless the grade is [`Grade::Ok`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// It is in order.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self {
            grade: Grade::Ok,
            check,
            detail: detail.into(),
            advice: None,
        }
    }

    /// Something does not work.
    pub fn warn(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            grade: Grade::Warn,
            check,
            detail: detail.into(),
            advice: Some(advice.into()),
        }
    }

    /// Nothing works.
    pub fn fail(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            grade: Grade::Fail,
            ..Self::warn(check, detail, advice)
        }
    }
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    /// Version of the program that looked.
    pub version: &'static str,
    /// No finding failed.
    pub ok: bool,
    /// In the order in which they are shown.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The answer that these findings make.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            ok: findings.iter().all(|f| f.grade != Grade::Fail),
            findings,
        }
    }
}

//! Doctor's answer as text for people: a row for each finding, what to do below it, a sum at the end.

use super::finding::{Finding, Grade, Report};

/// The text, ending in a newline.
pub(super) fn render(report: &Report) -> String {
    let rows = &report.findings;
    let width = rows.iter().map(|row| row.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        text.push_str(&format!(
            "{:<4}  {:<width$}  {}\n",
            word(row.grade),
            row.check,
            one_line(&row.detail)
        ));
        if let Some(advice) = &row.advice {
            text.push_str(&format!(
                "{:<4}  {:<width$}  -> {}\n",
                "",
                "",
                one_line(advice)
            ));
        }
    }
    let count = |grade| {
        rows.iter()
            .filter(|row: &&Finding| row.grade == grade)
            .count()
    };
    text.push_str(&format!(
        "\n{} ok, {} to look at, {} to put right\n",
        count(Grade::Ok),
        count(Grade::Warn),
        count(Grade::Fail)
    ));
    text
}

fn word(grade: Grade) -> &'static str {
    match grade {
        Grade::Ok => "OK",
        Grade::Warn => "WARN",
        Grade::Fail => "FAIL",
    }
}

/// Words of the engine and of plugins are shown on a terminal: no control characters, and a row stays a row.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_their_advice_and_a_sum() {
        let report = Report::new(vec![
            Finding::ok("engine", "28.5, API 1.51"),
            Finding::warn(
                "swap",
                "no\n swap\u{1b}[31m limits",
                "boot with swapaccount=1",
            ),
            Finding::fail("store", "full", "make room"),
        ]);
        assert_eq!(
            render(&report),
            "OK    engine  28.5, API 1.51\n\
             WARN  swap    no swap [31m limits\n\
             \x20             -> boot with swapaccount=1\n\
             FAIL  store   full\n\
             \x20             -> make room\n\
             \n\
             1 ok, 1 to look at, 1 to put right\n"
        );
    }
}

//! Log lines of the daemon itself: to standard error, filtered, as text or JSON.
//!
//! Owns the process-wide subscriber and the grammar of `log-level`. It must not know who logs what. Fails when a filter makes
//! no sense, or when a subscriber is there already.

use std::fmt;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::nearest;

/// The plain levels, the quietest first.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Which log lines are written: a level, or a filter expression such as `warn,springline::docker=trace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text each.
    #[default]
    Text,
    /// One JSON object each.
    Json,
}

/// Why lines cannot be logged as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// A word that is no level.
    #[error("`{word}` is not one of {}{}", LEVELS.join(", "), meant(word))]
    Level {
        /// The word.
        word: String,
    },
    /// A filter expression that cannot be read.
    #[error("`{text}`: {reason}; give a level, or a filter such as `warn,springline=debug`")]
    Filter {
        /// The expression.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else in this process logs already.
    #[error("log lines go elsewhere already: {0}")]
    Taken(String),
}

fn meant(word: &str) -> String {
    nearest(&word.to_lowercase(), LEVELS)
        .map(|level| format!(": did you mean `{level}`?"))
        .unwrap_or_default()
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl LogFilter {
    /// Reads a level or a filter expression.
    ///
    /// # Errors
    /// When it is neither. A lone word that is no level would be taken as the name of a module by the filter's own grammar,
    /// and would silence everything else; it is refused.
    pub fn parse(text: &str) -> Result<Self, TelemetryError> {
        let text = text.trim();
        if !text.contains('[') {
            let words = text.split(',').map(str::trim);
            let mut bare = words.filter(|part| !part.contains(['=', ':']));
            if let Some(word) = bare.find(|word| !LEVELS.contains(word)) {
                return Err(TelemetryError::Level {
                    word: word.to_owned(),
                });
            }
        }
        let filter = Self(text.to_owned());
        filter.env_filter()?;
        Ok(filter)
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A plain level is ours alone: the libraries below say no more than warnings, since their finer levels drown ours (and
    /// would show what is on the wire).
    fn directives(&self) -> String {
        match self.as_str() {
            "error" => "error".to_owned(),
            level if LEVELS.contains(&level) => format!("warn,springline={level}"),
            expression => expression.to_owned(),
        }
    }

    fn env_filter(&self) -> Result<EnvFilter, TelemetryError> {
        EnvFilter::builder()
            .parse(self.directives())
            .map_err(|error| TelemetryError::Filter {
                text: self.0.clone(),
                reason: error.to_string(),
            })
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LogFormat {
    /// Names of all forms.
    pub const NAMES: &'static [&'static str] = &["text", "json"];

    /// The form of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Sends this process' log lines to standard error, panics among them. Colours only when that is a terminal.
///
/// # Errors
/// When a subscriber is there already.
pub fn init(filter: &LogFilter, format: LogFormat) -> Result<(), TelemetryError> {
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = subscriber(filter, format, colours, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| TelemetryError::Taken(error.to_string()))?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let what = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, "panic, a defect of ours: {what}");
    }));
    Ok(())
}

fn subscriber<W>(
    filter: &LogFilter,
    format: LogFormat,
    colours: bool,
    writer: W,
) -> Result<Box<dyn tracing::Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter.env_filter()?)
        .with_ansi(colours)
        .with_writer(writer);
    Ok(match format {
        LogFormat::Text => Box::new(lines.finish()),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).finish()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn filters() {
        let cases: &[(&str, &str, Result<&str, &str>)] = &[
            ("level", "info", Ok("warn,springline=info")),
            ("finest", "trace", Ok("warn,springline=trace")),
            ("quietest", "error", Ok("error")),
            ("white space", " debug ", Ok("warn,springline=debug")),
            (
                "expression",
                "warn,springline::docker=trace",
                Ok("warn,springline::docker=trace"),
            ),
            (
                "span",
                "springline[call{id=7}]=debug",
                Ok("springline[call{id=7}]=debug"),
            ),
            ("misspelt", "infoo", Err("did you mean `info`?")),
            ("other word", "verbose", Err("is not one of error, warn")),
            ("upper case", "INFO", Err("did you mean `info`?")),
            ("empty", "", Err("is not one of")),
            ("misspelt in a list", "wran,springline=info", Err("`warn`?")),
            ("wrong level", "springline=loud", Err("give a level")),
        ];
        for (name, text, expect) in cases {
            match (LogFilter::parse(text), expect) {
                (Ok(filter), Ok(directives)) => {
                    assert_eq!(filter.directives(), *directives, "{name}")
                }
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{name}: {error}");
                }
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, format: LogFormat) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let filter = LogFilter::parse(filter).unwrap();
        let subscriber = subscriber(&filter, format, false, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("rpc", id = 7);
            let _in_span = span.enter();
            tracing::info!(container = "abc", "started");
            tracing::debug!("detail");
            tracing::info!(target: "hyper::client", "library's own");
            tracing::warn!(target: "hyper::client", "library's warning");
        });
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_lines() {
        let text = logged("info", LogFormat::Text);
        assert!(text.contains("started"), "{text}");
        assert!(text.contains("container=\"abc\""), "{text}");
        assert!(text.contains("library's warning"), "{text}");
        assert!(!text.contains("detail"), "{text}");
        assert!(!text.contains("library's own"), "{text}");
        assert!(
            !text.contains('\u{1b}'),
            "colours without a terminal: {text}"
        );
        assert!(logged("debug", LogFormat::Text).contains("detail"));
    }

    #[test]
    fn json_lines_carry_their_span() {
        let text = logged("info", LogFormat::Json);
        let first = text.lines().next().unwrap();
        let line: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!(line["message"], "started");
        assert_eq!(line["container"], "abc");
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["span"]["id"], 7);
    }
}

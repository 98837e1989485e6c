//! `log`: lines of a plugin in the daemon's log, attributed and bounded. Control characters are escaped, so that a plugin
//! cannot write a line that looks like somebody else's.

use tracing::Level;

use crate::plugin::bindings::log;
use crate::plugin::context::HookContext;

/// What log filters know plugins' lines by.
const TARGET: &str = "springline::plugin";
/// Bytes of one line.
const MAX_LINE: usize = 8 * 1024;

impl log::Host for HookContext {
    fn enabled(&mut self, level: log::Level) -> wasmtime::Result<bool> {
        self.meter.call()?;
        Ok(kept(level))
    }

    fn emit(
        &mut self,
        level: log::Level,
        code: String,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.meter.call()?;
        if !kept(level) {
            return Ok(());
        }
        self.log_lines = self.log_lines.saturating_add(1);
        if self.log_lines > self.manifest.limits.log_lines {
            return Ok(());
        }
        let mut left = MAX_LINE;
        let code = plain(&code, &mut left);
        let message = plain(&message, &mut left);
        let mut named = String::new();
        for (name, value) in fields {
            if left == 0 {
                break;
            }
            let name = plain(&name, &mut left);
            let value = plain(&value, &mut left);
            let gap = if named.is_empty() { "" } else { " " };
            named.push_str(&format!("{gap}{name}={value}"));
        }
        self.line(level, &code, &message, &named);
        Ok(())
    }
}

impl HookContext {
    fn line(&self, level: log::Level, code: &str, message: &str, fields: &str) {
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    $level,
                    plugin = %self.manifest.id,
                    hook = self.hook.as_str(),
                    namespace = %self.subject.pod_namespace,
                    pod = %self.subject.pod_name,
                    container = self.subject.container_name.as_deref(),
                    %code,
                    %fields,
                    "{message}"
                )
            };
        }
        match level {
            log::Level::Debug => line!(Level::DEBUG),
            log::Level::Info => line!(Level::INFO),
            log::Level::Warn => line!(Level::WARN),
            log::Level::Error => line!(Level::ERROR),
        }
    }

    /// Says how many lines were dropped, if any were.
    pub(in crate::plugin) fn close_log(&self) {
        let dropped = self
            .log_lines
            .saturating_sub(self.manifest.limits.log_lines);
        if dropped > 0 {
            tracing::warn!(
                plugin = %self.manifest.id,
                hook = self.hook.as_str(),
                dropped,
                "plugin logged more lines than one call may; the rest was dropped"
            );
        }
    }
}

/// Whether somebody reads lines of that level.
fn kept(level: log::Level) -> bool {
    match level {
        log::Level::Debug => tracing::enabled!(target: TARGET, Level::DEBUG),
        log::Level::Info => tracing::enabled!(target: TARGET, Level::INFO),
        log::Level::Warn => tracing::enabled!(target: TARGET, Level::WARN),
        log::Level::Error => tracing::enabled!(target: TARGET, Level::ERROR),
    }
}

/// The text without control characters, cut to what is left of the line.
pub(in crate::plugin) fn plain(text: &str, left: &mut usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let start = out.len();
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        if out.len() > *left {
            out.truncate(start);
            *left = 0;
            return out;
        }
    }
    *left -= out.len();
    out
}

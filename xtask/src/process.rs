//! Running other programs and saying so: steps with elapsed time, and quiet
//! commands whose output is shown only when they fail.
//!
//! A command gets no standard input. A failure names the command and carries
//! the end of its output.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::failure::{Context, Failure, Outcome};

/// How often a quiet command says that it still runs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);
/// How much of a failed command's output is shown.
const SHOWN_LINES: usize = 40;

/// Names a piece of work, does it, and says how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    println!("==> {name}");
    let began = Instant::now();
    let result = work();
    let verdict = if result.is_ok() { "done" } else { "FAILED" };
    println!("    {verdict}: {name} ({})", elapsed(began));
    result
}

/// `12.3 s` or `4 min 05 s`.
pub(crate) fn elapsed(since: Instant) -> String {
    let spent = since.elapsed();
    match spent.as_secs() / 60 {
        0 => format!("{:.1} s", spent.as_secs_f64()),
        minutes => format!("{minutes} min {:02} s", spent.as_secs() % 60),
    }
}

/// Runs a command with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command
        .stdin(Stdio::null())
        .status()
        .context(format!("starting {}", describe(command)))?;
    succeeded(command, status)
}

/// Runs a command and returns what it printed.
pub(crate) fn capture(command: &mut Command) -> Outcome<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context(format!("starting {}", describe(command)))?;
    succeeded(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command with its output in `log`, a sign of life now and then, and
/// the end of the output on the terminal only when it fails.
pub(crate) fn quietly(command: &mut Command, log: &Path) -> Outcome {
    let status = logged(command, log, |_| String::new())?;
    succeeded(command, status)
        .map_err(|failure| Failure::new(format!("{failure}\n{}", tail(log, SHOWN_LINES))))
}

/// Runs a command with its output in `log`; `progress` words the sign of life from the log so far.
pub(crate) fn logged(
    command: &mut Command,
    log: &Path,
    progress: impl Fn(&Path) -> String,
) -> Outcome<ExitStatus> {
    let mut child = spawn_logged(command, log)?;
    let began = Instant::now();
    let mut told = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("waiting for a command")? {
            return Ok(status);
        }
        if told.elapsed() >= SIGN_OF_LIFE {
            told = Instant::now();
            println!("    ... {} {}", elapsed(began), progress(log));
        }
        thread::sleep(POLL);
    }
}

/// Starts a command with its output in `log` and no standard input.
pub(crate) fn spawn_logged(command: &mut Command, log: &Path) -> Outcome<Child> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).context(format!("making {}", folder.display()))?;
    }
    let out = File::create(log).context(format!("making {}", log.display()))?;
    let err = out.try_clone().context("sharing a log file")?;
    command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .context(format!("starting {}", describe(command)))
}

/// Waits until `ready` holds; fails when `patience` is over.
pub(crate) fn wait_until(
    what: &str,
    patience: Duration,
    mut ready: impl FnMut() -> bool,
) -> Outcome {
    let began = Instant::now();
    while !ready() {
        if began.elapsed() > patience {
            return Err(Failure::new(format!(
                "{what} did not happen within {} s",
                patience.as_secs()
            )));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    const WINDOW: u64 = 64 * 1024;
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let length = file.metadata().map_or(0, |data| data.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(WINDOW)));
        let _ = file.read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(lines);
    let shown: Vec<String> = all
        .iter()
        .skip(from)
        .map(|line| format!("    | {line}"))
        .collect();
    format!("    (end of {})\n{}", log.display(), shown.join("\n"))
}

fn succeeded(command: &Command, status: ExitStatus) -> Outcome {
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} ended with {status}",
        describe(command)
    )))
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    format!("`{}`", words.join(" "))
}

//! Logging: the decisions of the start as lines on standard error, if `PELAGO_LOG` asks for them.
//!
//! Invariant: records are those of the crate `log`, and are made while a job forms, not in operations. A
//! program that has a logger of its own keeps it, and gets the records there.

use std::sync::{Mutex, PoisonError};

use log::{LevelFilter, Log, Metadata, Record};

use crate::print::print_stderr;

/// The value of `PELAGO_LOG`: a level for everything, and others for some targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter {
    level: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

impl LogFilter {
    /// Parses `level[,target=level]...`; the level for everything may stand anywhere, and is `off` without
    /// one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut filter = Self { level: LevelFilter::Off, targets: Vec::new() };
        let mut is_given = false;
        for word in text.split(',') {
            match word.split_once('=') {
                Some((target, level)) if !target.is_empty() => {
                    filter.targets.push((target.to_owned(), level.parse().ok()?));
                }
                Some(_) => return None,
                None if is_given => return None,
                None => (filter.level, is_given) = (word.parse().ok()?, true),
            }
        }
        Some(filter)
    }

    /// The level for a target: that of the longest name that is the target or a module around it.
    fn level_of(&self, target: &str) -> LevelFilter {
        let is_for = |name: &str| {
            target.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let found = self.targets.iter().filter(|(name, _)| is_for(name)).max_by_key(|(name, _)| name.len());
        found.map_or(self.level, |(_, level)| *level)
    }

    /// The most detailed level of all.
    fn most(&self) -> LevelFilter {
        self.targets.iter().map(|(_, level)| *level).chain([self.level]).max().unwrap_or(self.level)
    }
}

/// The speaker of the lines: a PE with its host, or the launcher.
static SPEAKER: Mutex<String> = Mutex::new(String::new());

/// Writes records to standard error from now on, with this speaker, if the filter lets any pass.
pub fn start_log(filter: &LogFilter, speaker: String) {
    if filter.most() == LevelFilter::Off {
        return;
    }
    *SPEAKER.lock().unwrap_or_else(PoisonError::into_inner) = speaker;
    // A program's own logger stays.
    if log::set_boxed_logger(Box::new(Lines(filter.clone()))).is_ok() {
        log::set_max_level(filter.most());
    }
}

/// The logger.
struct Lines(LogFilter);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.0.level_of(metadata.target())
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let speaker = SPEAKER.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let level = record.level().as_str().to_ascii_lowercase();
            print_stderr(&format!("{speaker}: {level} {}: {}\n", record.target(), record.args()));
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    #[test]
    fn levels_of_targets() {
        let filter = LogFilter::parse("info,fabric=trace,fabric::tcp=off").unwrap();
        let level = |target| filter.level_of(target);
        assert_eq!((level("job"), level("fabric")), (LevelFilter::Info, LevelFilter::Trace));
        assert_eq!((level("fabric::tcp"), level("fabrics")), (LevelFilter::Off, LevelFilter::Info));
        assert_eq!(filter.most(), LevelFilter::Trace);
        assert_eq!(LogFilter::parse("coll=debug").unwrap().level_of("job"), LevelFilter::Off);
        for text in ["", "loud", "info,", "=info", "info,debug", "fabric=", "fabric=loud"] {
            assert_eq!(LogFilter::parse(text), None, "{text}");
        }
    }

    #[test]
    fn fuzz_filters() {
        fuzzing::fuzz(&["off", "info", "debug,fabric=trace", "a::b=warn"], |input| {
            if let Some(filter) = LogFilter::parse(&String::from_utf8_lossy(input)) {
                assert!(filter.most() >= filter.level_of("fabric"));
            }
        });
    }
}

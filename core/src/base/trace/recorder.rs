//! The recorder of a PE.

use super::event::{Category, Event};
use super::file::{Kind, Stamp, TraceFile};
use super::statistics::Statistics;
use super::thread;
use crate::Pe;
use crate::base::locked::locked;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Records the operations of a PE, of all its threads.
pub struct Recorder {
    /// This PE, the PEs of the job, the node.
    place: (Pe, usize, u32),
    start: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    timeline: Option<Timeline>,
    statistics: Option<(Statistics, PathBuf)>,
}

/// A file with the numbers of the texts that it has.
struct Timeline {
    file: TraceFile,
    path: PathBuf,
    /// By the address of the text, which is static.
    texts: HashMap<(usize, usize), u16>,
}

impl Recorder {
    /// A recorder for PE `me`, which leaves files in these folders; `None` if there are none.
    ///
    /// # Errors
    /// If the timeline cannot be written there; the text says how to go on.
    pub fn new(
        (me, n_pes): (Pe, usize),
        node: u32,
        [trace, stats]: [Option<&Path>; 2],
    ) -> Result<Option<Recorder>, String> {
        if trace.is_none() && stats.is_none() {
            return Ok(None);
        }
        let round = next_round(me);
        let of = |folder: &Path, end| folder.join(format!("pe-{me:06}-{round}.{end}"));
        // Both clocks at once: files take a while, and not the same at all PEs.
        let start = Instant::now();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let pid = u64::from(std::process::id());
        let header = [me as u64, n_pes as u64, pid, node.into(), since_1970.as_nanos() as u64, 0];
        let open = |path: PathBuf| match TraceFile::create(&path, header) {
            Ok(file) => Ok(Timeline { file, path, texts: HashMap::new() }),
            Err(error) => Err(format!(
                "PE {me}: its timeline {} cannot be written: {error}. Name a folder that exists and has \
                 space on every node (PELAGO_TRACE, or pelago run --trace)",
                path.display()
            )),
        };
        let timeline = trace.map(|folder| open(of(folder, "trace"))).transpose()?;
        let statistics = stats.map(|folder| (Statistics::default(), of(folder, "stats")));
        let inner = Mutex::new(Inner { timeline, statistics });
        Ok(Some(Recorder { place: (me, n_pes, node), start, inner }))
    }

    /// Records the begin of an operation; its end is recorded when the result is dropped.
    pub fn begin(&self, event: Event) -> Span<'_> {
        if event.category == Category::Wait {
            thread::begin_wait();
        }
        let (since, waited) = (Instant::now(), thread::waited());
        self.timeline(since, |timeline, stamp| timeline.event(stamp, Kind::Begin, &event));
        Span { recorder: self, event, since, waited }
    }

    /// Records an event that takes no time.
    pub fn note(&self, event: Event) {
        let kind = match event.message {
            Some(_) if event.is_traffic => Kind::Departure,
            Some(_) => Kind::Arrival,
            None => Kind::Instant,
        };
        self.timeline(Instant::now(), |timeline, stamp| timeline.event(stamp, kind, &event));
        if event.category != Category::Step {
            self.count(&event, Duration::ZERO, Duration::ZERO);
        }
    }

    /// Writes what is not written yet, and ends the record.
    pub fn finish(&self) {
        let mut inner = locked(&self.inner);
        if let Some(mut timeline) = inner.timeline.take()
            && let Err(error) = timeline.file.close()
        {
            self.complain(&timeline.path, &error);
        }
        if let Some((statistics, path)) = inner.statistics.take() {
            let text = statistics.text(self.place, self.start.elapsed());
            if let Err(error) = std::fs::write(&path, text) {
                self.complain(&path, &error);
            }
        }
    }

    /// Ends the timeline, if it cannot be written.
    fn timeline(&self, now: Instant, write: impl FnOnce(&mut Timeline, Stamp) -> io::Result<()>) {
        let mut inner = locked(&self.inner);
        let Some(timeline) = &mut inner.timeline else { return };
        let nanos = now.saturating_duration_since(self.start).as_nanos() as u64;
        let outcome = match nanos >> Stamp::BITS {
            0 => write(timeline, Stamp { nanos, thread: thread::number() }),
            _ => Err(io::Error::other("a timeline has room for three days")),
        };
        if let Err(error) = outcome
            && let Some(timeline) = inner.timeline.take()
        {
            self.complain(&timeline.path, &error);
        }
    }

    fn count(&self, event: &Event, time: Duration, waited: Duration) {
        if let Some((statistics, _)) = &mut locked(&self.inner).statistics {
            statistics.add(event, time, waited);
        }
    }

    fn complain(&self, path: &Path, error: &io::Error) {
        let (me, path) = (self.place.0, path.display());
        pelago_boot::tell(&format!("PE {me}: {path} cannot be written, so the record ends here: {error}\n"));
    }
}

impl Timeline {
    fn event(&mut self, stamp: Stamp, kind: Kind, event: &Event) -> io::Result<()> {
        let texts = [self.text(stamp, event.name)?, self.text(stamp, event.detail)?];
        self.file.event(stamp, kind, event, texts)
    }

    /// The number of a text, which is written when it is first used; 0 if it is empty.
    fn text(&mut self, stamp: Stamp, text: &'static str) -> io::Result<u16> {
        if text.is_empty() {
            return Ok(0);
        }
        let key = (text.as_ptr() as usize, text.len());
        if let Some(&number) = self.texts.get(&key) {
            return Ok(number);
        }
        self.file.text(stamp, text)?;
        let number = u16::try_from(self.texts.len() + 1).map_err(|_| io::ErrorKind::StorageFull)?;
        self.texts.insert(key, number);
        Ok(number)
    }
}

/// The number of records that PE `me` has made in this process before: a process may join a job again.
fn next_round(me: Pe) -> u32 {
    static ROUNDS: Mutex<BTreeMap<Pe, u32>> = Mutex::new(BTreeMap::new());
    let mut rounds = locked(&ROUNDS);
    let next = rounds.entry(me).or_default();
    *next += 1;
    *next - 1
}

/// An operation that has not ended.
pub struct Span<'a> {
    recorder: &'a Recorder,
    event: Event,
    since: Instant,
    waited: Duration,
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let (now, waited) = (Instant::now(), thread::waited());
        if self.event.category == Category::Wait {
            let time = thread::end_wait(self.since);
            if let Some((statistics, _)) = &mut locked(&self.recorder.inner).statistics {
                statistics.add_wait(thread::number(), time);
            }
        }
        self.recorder.timeline(now, |timeline, stamp| timeline.file.end(stamp));
        self.recorder.count(&self.event, now - self.since, waited - self.waited);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::{PeStatistics, TimelineReader};
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("pelago-recorder-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        folder
    }

    #[test]
    fn waits_count_for_the_operation_around_them() {
        let folder = folder("waits");
        let recorder = Recorder::new((1, 2), 0, [None, Some(&folder)]).unwrap().unwrap();
        {
            let _barrier = recorder.begin(Event::new(Category::Collective, "barrier"));
            let _outer = recorder.begin(Event::new(Category::Wait, "barrier"));
            let _inner = recorder.begin(Event::new(Category::Wait, "completion"));
        }
        recorder.note(Event::departure("send", (1, 0), 0, 16));
        recorder.finish();
        let text = std::fs::read_to_string(folder.join("pe-000001-0.stats")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let times = |start: &str| -> Vec<u64> {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
            line.split('\t').skip(6).map(|word| word.parse().unwrap()).collect()
        };
        let barrier = times("row\tcollective\tbarrier\t");
        let outer = times("row\twait\tbarrier\t");
        assert!(outer[0] > 0 && barrier[0] >= outer[0], "{text}");
        assert!(barrier[2] >= outer[0] && barrier[2] <= barrier[0], "{text}");
        assert!(text.contains("peer\t0\t1\t16\n"), "{text}");
    }

    /// The clocks of PEs on one machine are compared by the time in their headers.
    #[test]
    fn a_record_lies_at_the_time_at_which_it_was_made() {
        let folder = folder("clock");
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let recorder = Recorder::new((11, 13), 0, [Some(&folder), None]).unwrap().unwrap();
        let before = now();
        recorder.note(Event::new(Category::Rma, "put"));
        let after = now();
        recorder.finish();
        let mut reader = TimelineReader::open(&folder.join("pe-000011-0.trace")).unwrap();
        let at = reader.start_nanos + reader.next_record().unwrap().unwrap().nanos;
        std::fs::remove_dir_all(&folder).unwrap();
        // The two clocks may be adjusted against each other by some nanoseconds.
        assert!(at + 1000 >= before && at <= after + 1000, "{before} {at} {after}");
    }

    #[test]
    fn the_waits_of_a_pe_are_those_of_the_thread_that_waits_longest() {
        let folder = folder("threads");
        let recorder = Recorder::new((12, 13), 0, [None, Some(&folder)]).unwrap().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _outer = recorder.begin(Event::new(Category::Wait, "message"));
                    let _inner = recorder.begin(Event::new(Category::Wait, "completion"));
                    std::thread::yield_now();
                });
            }
        });
        recorder.finish();
        let text = std::fs::read_to_string(folder.join("pe-000012-0.stats")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let of = PeStatistics::parse(&text).unwrap();
        let longest = of.rows.iter().map(|row| row.longest).max().unwrap();
        assert_eq!(of.rows.iter().map(|row| row.calls).sum::<u64>(), 8, "{text}");
        assert!(of.waited <= of.elapsed && of.waited >= longest, "{text}");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let folder = Path::new("/nonexistent/folder");
        let error = Recorder::new((3, 4), 0, [Some(folder), None]).err().unwrap();
        assert!(error.starts_with("PE 3: its timeline /nonexistent/folder/pe-000003-0.trace"), "{error}");
        assert!(Recorder::new((3, 4), 0, [None, None]).unwrap().is_none());
    }
}

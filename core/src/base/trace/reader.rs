//! Reading the files that PEs leave: timelines and statistics.

use super::event::Category;
use super::file::{Kind, MAGIC, VERSION, WINDOW_BYTES};
use crate::Pe;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// The timeline of a PE, read from the begin to the end without being kept.
pub struct TimelineReader {
    input: BufReader<File>,
    /// Bytes that were read.
    at: u64,
    pub pe: Pe,
    pub n_pes: usize,
    pub pid: u64,
    pub node: u64,
    /// The time at which the record begins, in nanoseconds since 1970.
    pub start_nanos: u64,
    /// The texts of the file, by their numbers; the first is empty.
    pub texts: Vec<String>,
}

/// A record of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since the record began.
    pub nanos: u64,
    pub thread: u8,
    pub what: What,
}

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Begin(Operation),
    End,
    /// An event without a duration.
    Instant(Operation),
    /// A message with this number leaves.
    Departure(Operation, u64),
    /// It arrives.
    Arrival(Operation, u64),
}

/// The operation of a record; name and detail are numbers of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub category: Category,
    pub name: u16,
    pub detail: u16,
    pub peer: Option<Pe>,
    pub bytes: u64,
}

impl TimelineReader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not the timeline of a PE. The kind is `UnexpectedEof` for a PE that was
    /// killed before it had recorded anything.
    pub fn open(path: &Path) -> io::Result<TimelineReader> {
        let mut input = BufReader::with_capacity(1 << 16, File::open(path)?);
        let mut header = [0; 8];
        for word in &mut header {
            *word = read_word(&mut input)?.unwrap_or(0);
        }
        let [magic, version, pe, n_pes, pid, node, start_nanos, _] = header;
        if magic == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the record of a PE that has not begun",
            ));
        }
        if magic != MAGIC || version != VERSION {
            return Err(invalid("this is not the timeline of a PE, or one of another version"));
        }
        let (pe, n_pes, texts) = (pe as Pe, n_pes as usize, vec![String::new()]);
        Ok(TimelineReader { input, at: 64, pe, n_pes, pid, node, start_nanos, texts })
    }

    /// The next record; `None` at the end. A record that was cut off is the end.
    ///
    /// # Errors
    /// If the file cannot be read, or has a record that no PE writes.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        loop {
            let Some(first) = self.word()? else { return Ok(None) };
            let (nanos, thread) = (first >> 16, (first >> 8) as u8);
            let record = |what| Ok(Some(Record { nanos, thread, what }));
            match Kind::of(first as u8) {
                None if first == 0 => {
                    if !self.skip_window()? {
                        return Ok(None);
                    }
                }
                None => return Err(invalid("a record of an unknown kind")),
                Some(Kind::Text) => {
                    if !self.read_text()? {
                        return Ok(None);
                    }
                }
                Some(Kind::End) => return record(What::End),
                Some(kind) => {
                    let Some(operation) = self.operation()? else { return Ok(None) };
                    let what = match kind {
                        Kind::Begin => What::Begin(operation),
                        Kind::Instant => What::Instant(operation),
                        _ => {
                            let Some(message) = self.word()? else { return Ok(None) };
                            match kind {
                                Kind::Departure => What::Departure(operation, message),
                                _ => What::Arrival(operation, message),
                            }
                        }
                    };
                    return record(what);
                }
            }
        }
    }

    /// The text with a number.
    pub fn text(&self, number: u16) -> &str {
        &self.texts[usize::from(number)]
    }

    fn word(&mut self) -> io::Result<Option<u64>> {
        let word = read_word(&mut self.input)?;
        self.at += 8;
        Ok(word)
    }

    /// Goes to the next window; whether there is one.
    fn skip_window(&mut self) -> io::Result<bool> {
        let rest = self.at.next_multiple_of(WINDOW_BYTES as u64) - self.at;
        let skipped = io::copy(&mut (&mut self.input).take(rest), &mut io::sink())?;
        self.at += skipped;
        Ok(skipped == rest)
    }

    /// Reads a text; whether it is whole.
    fn read_text(&mut self) -> io::Result<bool> {
        let Some(bytes) = self.word()? else { return Ok(false) };
        if bytes > WINDOW_BYTES as u64 {
            return Err(invalid("a text that is longer than any"));
        }
        let (mut text, words) = (Vec::new(), bytes.div_ceil(8));
        for _ in 0..words {
            let Some(word) = self.word()? else { return Ok(false) };
            text.extend(word.to_le_bytes());
        }
        text.truncate(bytes as usize);
        self.texts.push(String::from_utf8_lossy(&text).into_owned());
        Ok(true)
    }

    fn operation(&mut self) -> io::Result<Option<Operation>> {
        let (Some(what), Some(bytes)) = (self.word()?, self.word()?) else { return Ok(None) };
        let (peer, category) = (what & 0xff_ffff, (what >> 24) as u8);
        let (name, detail) = ((what >> 32) as u16, (what >> 48) as u16);
        let category = Category::ALL.into_iter().find(|of| *of as u8 == category);
        let category = category.ok_or_else(|| invalid("an operation of an unknown category"))?;
        if [name, detail].iter().any(|&number| usize::from(number) >= self.texts.len()) {
            return Err(invalid("an operation whose name is not in the file"));
        }
        let peer = peer.checked_sub(1).map(|pe| pe as Pe);
        Ok(Some(Operation { category, name, detail, peer, bytes }))
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The next word, or `None` if the file has no whole one.
fn read_word(input: &mut impl Read) -> io::Result<Option<u64>> {
    let mut word = [0; 8];
    match input.read_exact(&mut word) {
        Ok(()) => Ok(Some(u64::from_le_bytes(word))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The statistics of a PE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeStatistics {
    pub pe: Pe,
    pub n_pes: usize,
    pub node: u64,
    /// The time from joining the job to leaving it.
    pub elapsed: Duration,
    /// The part of it in which the thread that has waited longest has waited.
    pub waited: Duration,
    pub rows: Vec<Row>,
    /// Each PE with which this one exchanged data: operations that this PE started, and their bytes.
    pub peers: Vec<(Pe, u64, u64)>,
}

/// The operations of a PE with one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub category: String,
    pub name: String,
    pub detail: String,
    pub calls: u64,
    pub bytes: u64,
    /// The time of all calls, that of the longest, and the part of it in which the PE waited.
    pub time: Duration,
    pub longest: Duration,
    pub waited: Duration,
}

impl PeStatistics {
    /// Reads the text of a PE. `None` if it is not one.
    pub fn parse(text: &str) -> Option<PeStatistics> {
        let mut lines = text.lines();
        if lines.next()? != "pelago statistics 2" {
            return None;
        }
        let nanos = |word: &str| word.parse().ok().map(Duration::from_nanos);
        let mut this = PeStatistics::default();
        for line in lines {
            let words: Vec<&str> = line.split('\t').collect();
            match words[..] {
                ["pe", pe, n_pes, node, elapsed, waited] => {
                    (this.pe, this.n_pes) = (pe.parse().ok()?, n_pes.parse().ok()?);
                    (this.node, this.elapsed) = (node.parse().ok()?, nanos(elapsed)?);
                    this.waited = nanos(waited)?;
                }
                ["row", category, name, detail, calls, bytes, time, longest, waited] => {
                    let [category, name, detail] = [category, name, detail].map(str::to_owned);
                    let (calls, bytes) = (calls.parse().ok()?, bytes.parse().ok()?);
                    let (time, longest, waited) = (nanos(time)?, nanos(longest)?, nanos(waited)?);
                    this.rows.push(Row { category, name, detail, calls, bytes, time, longest, waited });
                }
                ["peer", pe, operations, bytes] => {
                    this.peers.push((pe.parse().ok()?, operations.parse().ok()?, bytes.parse().ok()?));
                }
                _ => return None,
            }
        }
        (this.n_pes > 0).then_some(this)
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Event;
    use super::super::recorder::Recorder;
    use super::*;
    use proptest::prelude::*;

    fn read(path: &Path) -> (Vec<String>, Vec<Record>) {
        let mut reader = TimelineReader::open(path).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            records.push(record);
        }
        (reader.texts, records)
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("pelago-reader-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_long_record_is_read_as_it_was_made() {
        let folder = folder("long");
        let recorder = Recorder::new((7, 9), 1, [Some(&folder), None]).unwrap().unwrap();
        let n = 60_000;
        for _ in 0..n {
            let _span = recorder.begin(Event::new(Category::Rma, "put").with(3, 24));
            recorder.note(Event::departure("send", (7, 8), 1, 5));
        }
        let path = folder.join("pe-000007-0.trace");
        let open = read(&path);
        recorder.finish();
        let (texts, records) = read(&path);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(open, (texts.clone(), records.clone()), "before and after the record was closed");
        assert_eq!(texts, ["", "put", "send"]);
        assert_eq!(records.len(), 3 * n);
        assert!(records.windows(2).all(|pair| pair[0].nanos <= pair[1].nanos));
        let put = Operation { category: Category::Rma, name: 1, detail: 0, peer: Some(3), bytes: 24 };
        for three in records.chunks(3) {
            assert_eq!((three[0].what, three[2].what), (What::Begin(put), What::End));
            assert!(matches!(three[1].what, What::Departure(Operation { peer: Some(8), bytes: 5, .. }, _)));
        }
    }

    proptest! {
        #[test]
        fn files_that_no_pe_writes_are_refused(words in proptest::collection::vec(any::<u64>(), 0..40)) {
            let folder = folder("invalid");
            let path = folder.join("file");
            let header = [MAGIC, VERSION, 0, 1, 0, 0, 0, 0];
            let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
            std::fs::write(&path, bytes(&[&header, &words[..]].concat())).unwrap();
            let mut reader = TimelineReader::open(&path).unwrap();
            while let Ok(Some(_)) = reader.next_record() {}
            std::fs::write(&path, bytes(&words)).unwrap();
            prop_assert!(TimelineReader::open(&path).is_err());
        }
    }

    #[test]
    fn statistics_are_read_as_they_were_written() {
        let text =
            "pelago statistics 2\npe\t1\t4\t0\t50\t9\nrow\trma\tput\t\t2\t200\t4\t3\t1\npeer\t2\t2\t200\n";
        let read = PeStatistics::parse(text).unwrap();
        assert_eq!((read.pe, read.n_pes, read.elapsed), (1, 4, Duration::from_nanos(50)));
        assert_eq!((read.rows[0].calls, read.rows[0].bytes, read.peers[0]), (2, 200, (2, 2, 200)));
        for bad in ["", "pelago statistics 1\n", "pelago statistics 2\n", &text.replace("200", "many")] {
            assert_eq!(PeStatistics::parse(bad), None, "{bad}");
        }
    }
}

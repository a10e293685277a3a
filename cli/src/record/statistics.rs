//! The statistics of a job: those of all its PEs together, as tables, for a program, or as a page.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use pelago_boot::HeldSignals;
use pelago_core::base::trace::reader::{PeStatistics, Row};
use pelago_report::{Bytes, Table, figure};
use serde::Serialize;

use super::{missing, page, read_statistics};

/// Jobs of more PEs have only some of them in the tables.
const PES_SHOWN: usize = 16;

/// The statistics of a job.
#[derive(Serialize)]
pub struct JobStatistics {
    /// PEs of the job.
    pub n_pes: usize,
    /// The longest time of a PE from joining to leaving, in seconds.
    pub seconds: f64,
    pub operations: Vec<Operations>,
    pub waits: Vec<Operations>,
    pub pes: Vec<Pe>,
    /// A sentence about the PEs that have left no statistics; empty if all have.
    pub missing: String,
}

/// Operations with one name, of all PEs together.
#[derive(Clone, Default, Serialize)]
pub struct Operations {
    pub category: String,
    pub name: String,
    /// The algorithm of a collective operation, the handler of an active message, what a wait is for.
    pub detail: String,
    pub calls: u64,
    pub bytes: u64,
    pub seconds: f64,
    pub longest_seconds: f64,
    /// The part of the time in which the PEs waited.
    pub waited_seconds: f64,
}

/// A PE.
#[derive(Serialize)]
pub struct Pe {
    pub pe: usize,
    pub node: u64,
    pub seconds: f64,
    /// The part of it in which the thread that has waited longest has waited.
    pub waited_seconds: f64,
    /// Operations with data that this PE started, and their bytes.
    pub operations: u64,
    pub bytes: u64,
    /// The same by the other PE of each: its number, operations, bytes.
    pub peers: Vec<(usize, u64, u64)>,
}

impl JobStatistics {
    /// Reads the statistics that the PEs of a job have left in a folder.
    ///
    /// # Errors
    /// If there are none, or they cannot be read, or if one of the `signals` has come.
    pub fn read(folder: &Path, signals: &HeldSignals) -> anyhow::Result<JobStatistics> {
        Ok(JobStatistics::of(&read_statistics(folder, signals)?))
    }

    /// Adds up the statistics of PEs. A PE that has joined several times counts as one.
    fn of(all: &[PeStatistics]) -> JobStatistics {
        let (mut operations, mut waits, mut pes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut peers = BTreeMap::<(usize, usize), (u64, u64)>::new();
        for of in all {
            let pe = pes.entry(of.pe).or_insert_with(|| Pe {
                pe: of.pe,
                node: of.node,
                seconds: 0.0,
                waited_seconds: 0.0,
                operations: 0,
                bytes: 0,
                peers: Vec::new(),
            });
            pe.seconds += of.elapsed.as_secs_f64();
            pe.waited_seconds += of.waited.as_secs_f64();
            for row in &of.rows {
                add(if row.category == "wait" { &mut waits } else { &mut operations }, row);
            }
            for &(peer, count, bytes) in &of.peers {
                (pe.operations, pe.bytes) = (pe.operations + count, pe.bytes + bytes);
                let sum = peers.entry((of.pe, peer)).or_default();
                *sum = (sum.0 + count, sum.1 + bytes);
            }
        }
        for ((pe, peer), (count, bytes)) in peers {
            pes.entry(pe).and_modify(|pe| pe.peers.push((peer, count, bytes)));
        }
        let n_pes = all.iter().map(|of| of.n_pes).max().unwrap_or(0);
        let missing = missing(n_pes, pes.keys().copied()).trim_start_matches("; ").to_owned();
        let pes: Vec<Pe> = pes.into_values().collect();
        let seconds = pes.iter().map(|pe| pe.seconds).fold(0.0, f64::max);
        JobStatistics { n_pes, seconds, operations: sorted(operations), waits: sorted(waits), pes, missing }
    }

    /// The form that the end of a file's name asks for.
    ///
    /// # Errors
    /// If it asks for none that there is.
    pub fn in_form(&self, file: &Path) -> anyhow::Result<String> {
        match Form::of(file)? {
            Form::Page => Ok(page::page(self)),
            Form::Json => Ok(self.json()? + "\n"),
        }
    }

    /// All of it as JSON.
    ///
    /// # Errors
    /// If a number has no form in JSON.
    pub fn json(&self) -> anyhow::Result<String> {
        // Many PEs have many peers: with a line for each number the text would be several times as long.
        Ok(serde_json::to_string(self)?)
    }

    /// The tables, each with its title.
    pub fn tables(&self) -> Vec<Table> {
        let all: f64 = self.pes.iter().map(|pe| pe.seconds).sum();
        let share = |seconds: f64| format!("{:.1}", if all > 0.0 { 100.0 * seconds / all } else { 0.0 });
        let ms = |seconds: f64| figure(1e3 * seconds);
        let mut operations = Table::new(
            format!(
                "Operations of {} PEs in {} s; times of all PEs together",
                self.pes.len(),
                figure(self.seconds)
            ),
            3,
            "kind|operation||calls|bytes|time, ms|% of all|waited, ms|longest, ms",
        );
        for row in &self.operations {
            let words = [row.category.clone(), row.name.clone(), row.detail.clone()];
            let times =
                [ms(row.seconds), share(row.seconds), ms(row.waited_seconds), ms(row.longest_seconds)];
            operations.row((words, [row.calls.to_string(), Bytes(row.bytes).to_string()], times));
        }
        let mut waits = Table::new("Waits by cause", 2, "for||waits|time, ms|% of all|longest, ms");
        for row in &self.waits {
            let words = [row.name.clone(), row.detail.clone()];
            let times = [ms(row.seconds), share(row.seconds), ms(row.longest_seconds)];
            waits.row((words, row.calls.to_string(), times));
        }
        let title = format!(
            "PEs{}; {}",
            if self.pes.len() > PES_SHOWN { ", some of them" } else { "" },
            self.imbalance()
        );
        let mut pes = Table::new(title, 0, "PE|node|time, ms|waited, ms|% waited|operations|bytes");
        for pe in self.shown() {
            let waited = format!("{:.1}", 100.0 * pe.waited_seconds / pe.seconds.max(f64::MIN_POSITIVE));
            let counts = [pe.operations.to_string(), Bytes(pe.bytes).to_string()];
            let times = [ms(pe.seconds), ms(pe.waited_seconds), waited];
            pes.row(([pe.pe.to_string(), pe.node.to_string()], times, counts));
        }
        [operations, waits, pes].into_iter().chain(self.matrix()).filter(|table| !table.is_empty()).collect()
    }

    /// The PEs that the table shows: of many, those that have waited least and longest.
    fn shown(&self) -> Vec<&Pe> {
        let mut pes: Vec<&Pe> = self.pes.iter().collect();
        if pes.len() > PES_SHOWN {
            pes.sort_by(|a, b| a.waited_seconds.total_cmp(&b.waited_seconds));
            pes.drain(PES_SHOWN / 2..pes.len() - PES_SHOWN / 2);
        }
        pes
    }

    /// The longest time that a PE has not waited, beside the mean.
    fn imbalance(&self) -> String {
        let busy = |pe: &Pe| (pe.seconds - pe.waited_seconds).max(0.0);
        let mean = self.pes.iter().map(busy).sum::<f64>() / self.pes.len().max(1) as f64;
        let Some(most) = self.pes.iter().max_by(|a, b| busy(a).total_cmp(&busy(b))) else {
            return String::new();
        };
        let ratio = if mean > 0.0 { busy(most) / mean } else { 1.0 };
        format!(
            "imbalance {ratio:.2}: PE {} did not wait for {} ms, the mean is {} ms",
            most.pe,
            figure(1e3 * busy(most)),
            figure(1e3 * mean)
        )
    }

    /// The communication matrix of a job with few PEs.
    fn matrix(&self) -> Option<Table> {
        if self.n_pes > PES_SHOWN || self.pes.iter().all(|pe| pe.peers.is_empty()) {
            return None;
        }
        let names: Vec<_> = (0..self.n_pes).map(|pe| format!("with {pe}")).collect();
        let title = "Communication matrix: bytes of the operations that a PE started, by the other PE";
        let mut table = Table::new(title, 0, &format!("PE|{}", names.join("|")));
        for pe in &self.pes {
            let bytes = |of: usize| pe.peers.iter().find(|(other, ..)| *other == of).map_or(0, |peer| peer.2);
            let cells = (0..self.n_pes).map(|of| match bytes(of) {
                0 => "-".to_owned(),
                bytes => Bytes(bytes).to_string(),
            });
            table.row((pe.pe.to_string(), cells.collect::<Vec<_>>()));
        }
        Some(table)
    }
}

impl fmt::Display for JobStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in self.tables() {
            writeln!(f, "\n{}", table.to_string().trim_end())?;
        }
        match self.missing.is_empty() {
            true => Ok(()),
            false => writeln!(f, "\n{}", self.missing),
        }
    }
}

/// The form of a file with statistics.
#[derive(Clone, Copy)]
pub enum Form {
    Page,
    Json,
}

impl Form {
    /// The form that the end of a file's name asks for.
    ///
    /// # Errors
    /// If it asks for none that there is.
    pub fn of(file: &Path) -> anyhow::Result<Form> {
        match file.extension().and_then(|end| end.to_str()) {
            Some("html") => Ok(Form::Page),
            Some("json") => Ok(Form::Json),
            _ => bail!("{}: the name of a file with statistics ends with .html or .json", file.display()),
        }
    }
}

type Sums = BTreeMap<(String, String, String), Operations>;

fn add(sums: &mut Sums, row: &Row) {
    let Row { category, name, detail, .. } = row.clone();
    let sum = sums.entry((category.clone(), name.clone(), detail.clone())).or_default();
    let seconds = |time: Duration| time.as_secs_f64();
    *sum = Operations {
        category,
        name,
        detail,
        calls: sum.calls + row.calls,
        bytes: sum.bytes + row.bytes,
        seconds: sum.seconds + seconds(row.time),
        longest_seconds: sum.longest_seconds.max(seconds(row.longest)),
        waited_seconds: sum.waited_seconds + seconds(row.waited),
    };
}

/// By category, the longest first.
fn sorted(sums: Sums) -> Vec<Operations> {
    let mut all: Vec<_> = sums.into_values().collect();
    all.sort_by(|a, b| a.category.cmp(&b.category).then(b.seconds.total_cmp(&a.seconds)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn sample() -> JobStatistics {
        let of = |pe: usize, wait: u64| {
            let text = format!(
                "pelago statistics 2\npe\t{pe}\t2\t0\t10000000\t{wait}\n\
                 row\trma\tput\t\t3\t3072\t3000\t2000\t0\n\
                 row\twait\tbarrier\t\t1\t0\t{wait}\t{wait}\t0\npeer\t{}\t3\t3072\n",
                1 - pe
            );
            PeStatistics::parse(&text).unwrap()
        };
        JobStatistics::of(&[of(0, 1_000_000), of(1, 5_000_000)])
    }

    #[test]
    fn pes_are_added_up() {
        let text = sample().to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            lines.contains(&vec!["rma", "put", "6", "6", "KiB", "0.006", "0.0", "0.000", "0.002"]),
            "{text}"
        );
        assert!(lines.contains(&vec!["barrier", "2", "6.00", "30.0", "5.00"]), "{text}");
        assert!(lines.contains(&vec!["1", "0", "10.0", "5.00", "50.0", "3", "3", "KiB"]), "{text}");
        assert!(
            text.contains("imbalance 1.29: PE 0 did not wait for 9.00 ms, the mean is 7.00 ms"),
            "{text}"
        );
        assert!(lines.contains(&vec!["0", "-", "3", "KiB"]), "{text}");
    }

    #[test]
    fn forms_follow_from_the_name() {
        let form = |name: &str| sample().in_form(Path::new(name));
        assert!(form("x.html").unwrap().starts_with("<!DOCTYPE html>"));
        let json: serde_json::Value = serde_json::from_str(&form("x.json").unwrap()).unwrap();
        assert_eq!(json["pes"][1]["peers"][0][2], 3072);
        assert!(form("x.txt").unwrap_err().to_string().contains(".html or .json"));
    }

    #[test]
    fn a_pe_that_joined_twice_is_one_pe() {
        let text = "pelago statistics 2\npe\t0\t1\t0\t1000\t10\npeer\t0\t1\t8\n";
        let one = PeStatistics::parse(text).unwrap();
        let job = JobStatistics::of(&[one.clone(), one]);
        assert_eq!((job.pes.len(), job.pes[0].bytes, &job.pes[0].peers[..]), (1, 16, &[(0, 2, 16)][..]));
    }
}

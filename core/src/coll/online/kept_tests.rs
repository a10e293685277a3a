//! Tests of the file of outcomes: what is written is read again, and nothing that does not fit is taken.

use super::*;
use crate::coll::shape::Operation;

fn fit() -> Fit {
    let [version, machine, job] = ["0.1.0", "A processor, 2 cores", "4 PEs on 2 nodes"].map(str::to_owned);
    Fit { version, machine, job }
}

fn entry(operation: Operation, power: u8) -> Entry {
    let laws = operation.combines().then_some(Laws { is_associative: true, is_commutative: true });
    Entry::of("symmetric", &Groups::of(&[0, 0, 1, 1]), &Class { operation, power, laws })
}

fn forms() -> Vec<Form> {
    let all = Operation::ALL.into_iter().flat_map(Candidate::all);
    let forms = all.flat_map(|candidate| [Form::All(candidate), Form::Leaders(candidate)]);
    std::iter::once(Form::Usual).chain(forms).collect()
}

/// A folder of this test alone, which goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pelago-kept-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        Folder(path)
    }

    fn open(&self, fit: Fit) -> Kept {
        Kept::read(Some(self.0.clone()), fit)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn what_is_written_is_read_again_and_nothing_else_is_left() {
    let folder = Folder::new("round");
    let mut kept = folder.open(fit());
    let forms = forms();
    for (power, form) in forms.iter().enumerate() {
        kept.add(&entry(Operation::Broadcast, power as u8), form);
    }
    kept.save();
    let again = folder.open(fit());
    for (power, form) in forms.iter().enumerate() {
        assert_eq!(again.find(&entry(Operation::Broadcast, power as u8)), Some(Kept::text(form)));
    }
    assert_eq!(again.find(&entry(Operation::AllReduce, 3)), None);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn different_things_have_different_entries_and_forms() {
    let entries: Vec<_> = [Operation::Broadcast, Operation::AllReduce]
        .into_iter()
        .flat_map(|operation| [3, 4].map(|power| entry(operation, power).0))
        .collect();
    let all: std::collections::BTreeSet<_> = entries.iter().collect();
    assert_eq!(all.len(), 4);
    let class = Class { operation: Operation::AllReduce, power: 3, laws: None };
    let of = |nodes: &[u32]| Entry::of("symmetric", &Groups::of(nodes), &class);
    assert_ne!(of(&[0, 0, 1, 1]), of(&[0, 1, 0, 1]));
    assert_ne!(of(&[0, 0, 0]), of(&[0, 0, 0, 0]));
    assert_eq!(of(&[7, 7, 3]), of(&[1, 1, 2]), "the numbers of nodes do not matter");
    let texts: std::collections::BTreeSet<_> = forms().iter().map(Kept::text).collect();
    // The numbers of inclusive and exclusive scans are the same texts, for other entries.
    assert!(texts.len() > 40, "{}", texts.len());
}

#[test]
fn two_jobs_that_end_one_after_the_other_both_leave_their_outcomes() {
    let folder = Folder::new("two");
    let (mut one, mut other) = (folder.open(fit()), folder.open(fit()));
    one.add(&entry(Operation::Broadcast, 3), &Form::Usual);
    other.add(&entry(Operation::Broadcast, 4), &Form::Usual);
    one.save();
    other.save();
    let again = folder.open(fit());
    assert!([3, 4].iter().all(|power| again.find(&entry(Operation::Broadcast, *power)).is_some()));
}

#[test]
fn a_file_of_another_version_machine_or_job_is_not_taken() {
    let kept = BTreeMap::from([("a".to_owned(), "usual".to_owned())]);
    let good = text(&fit(), &kept);
    assert_eq!(parse(good.as_bytes(), &fit()), Ok(kept.clone()));
    let others: [(Fit, &str); 3] = [
        (Fit { version: "0.0.9".to_owned(), ..fit() }, "of the version \"0.0.9\", and this is \"0.1.0\""),
        (Fit { machine: "B".to_owned(), ..fit() }, "of the machine \"B\""),
        (Fit { job: "8 PEs".to_owned(), ..fit() }, "of the job \"8 PEs\""),
    ];
    for (other, reason) in others {
        let refusal = parse(text(&other, &kept).as_bytes(), &fit()).unwrap_err();
        assert!(refusal.contains(reason), "{refusal}");
    }
    assert_ne!(fit().file_name(), Fit { job: "8 PEs".to_owned(), ..fit() }.file_name());
    assert_eq!(fit().file_name(), Fit { version: "2".to_owned(), ..fit() }.file_name());
    let later = good.replace("format 1", "format 2");
    assert!(parse(later.as_bytes(), &fit()).unwrap_err().contains("has format 2"));
}

#[test]
fn every_damage_is_found() {
    let kept = BTreeMap::from([("a b".to_owned(), "usual".to_owned()), ("c".to_owned(), "all".to_owned())]);
    let good = text(&fit(), &kept).into_bytes();
    for length in 0..good.len() {
        assert!(parse(&good[..length], &fit()).is_err(), "the first {length} bytes");
    }
    for (place, bit) in (0..good.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
        let mut bad = good.clone();
        bad[place] ^= 1 << bit;
        assert!(parse(&bad, &fit()).is_err(), "bit {bit} of byte {place}");
    }
    for place in 0..good.len() {
        for piece in [&b"x"[..], b"\n", b" = ", b"\0", b"\xff", b"sum 0\n", &good] {
            let mut bad = good.clone();
            bad.splice(place..place, piece.iter().copied());
            assert!(parse(&bad, &fit()).is_err(), "{piece:?} at {place}");
        }
    }
    for bad in ["", "\n", "[[broadcast]]\nalgorithm = 'ring'\n", "sum 0\n", MAGIC] {
        assert!(parse(bad.as_bytes(), &fit()).is_err(), "{bad:?}");
    }
}

#[test]
fn what_does_not_fit_is_ignored_and_replaced() {
    let folder = Folder::new("ignored");
    let path = folder.0.join(fit().file_name());
    let bads: [&[u8]; 4] = [b"", b"nonsense", &[0xff; 100], &vec![b'a'; FILE_BYTES_MAX as usize + 1]];
    for bad in bads {
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(&path, bad).unwrap();
        let mut kept = folder.open(fit());
        let broadcast = entry(Operation::Broadcast, 3);
        assert_eq!(kept.find(&broadcast), None);
        kept.add(&broadcast, &Form::Usual);
        kept.save();
        assert_eq!(folder.open(fit()).find(&broadcast), Some("usual".to_owned()));
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let mut kept = folder.open(fit());
    kept.add(&entry(Operation::Broadcast, 3), &Form::Usual);
    kept.save();
    assert!(path.is_dir(), "what cannot be replaced stays");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn folders() {
    assert_eq!(folder_of(&KeepFolder::Off), None);
    assert_eq!(folder_of(&KeepFolder::Path("here".to_owned())), Some("here".into()));
    let mut nowhere = Kept::read(None, fit());
    nowhere.add(&entry(Operation::Broadcast, 3), &Form::Usual);
    nowhere.save();
    assert_eq!(nowhere.find(&entry(Operation::Broadcast, 3)), Some("usual".to_owned()));
}

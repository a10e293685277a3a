//! The hosts of an allocation of Slurm, from the variables that it sets: `SLURM_JOB_NODELIST` (hosts, with
//! ranges in brackets) and `SLURM_TASKS_PER_NODE` (numbers, with repetitions). Inside a step with fewer nodes
//! than the job, the numbers are those of the step, and `SLURM_STEP_NODELIST` has its hosts. Source: the
//! manuals of `salloc`, `srun` and `scontrol show hostnames`.

use super::{HostSlots, HostsError, SLOTS_MAX, check_name};

/// The maximum number of hosts of an allocation; more indicate a parsing error.
const HOSTS_MAX: usize = 1 << 20;

const NODES: &str = "SLURM_JOB_NODELIST";
const STEP_NODES: &str = "SLURM_STEP_NODELIST";
const TASKS: &str = "SLURM_TASKS_PER_NODE";

/// The hosts that Slurm has allocated, with a slot for each of its tasks; `None` outside of an allocation,
/// and in one of this host alone (`SLURMD_NODENAME`). Variables are looked up through `lookup`.
///
/// # Errors
/// [`HostsError::Slurm`]: a variable that does not have the format of Slurm's manual.
pub fn hosts_of_slurm(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Vec<HostSlots>>, HostsError> {
    let (Some(list), Some(tasks)) = (lookup(NODES), lookup(TASKS)) else { return Ok(None) };
    let names = names(&list).map_err(|why| HostsError::Slurm { variable: NODES, value: list, why })?;
    let this = lookup("SLURMD_NODENAME");
    let is_this = |names: &[String]| this.as_ref().is_some_and(|this| names == [&**this]);
    if is_this(&names) {
        return Ok(None);
    }
    let failed = |why| HostsError::Slurm { variable: TASKS, value: tasks.clone(), why };
    let slots = counts(&tasks).map_err(failed)?;
    let names = nodes_of(&slots, names, lookup);
    if is_this(&names) {
        return Ok(None);
    }
    if slots.len() < names.len() {
        return Err(failed("it has fewer nodes than SLURM_JOB_NODELIST"));
    }
    Ok(Some(names.into_iter().zip(slots).map(|(name, slots)| HostSlots { name, slots }).collect()))
}

/// The number of tasks of an allocation of this host alone, for which [`hosts_of_slurm`] returns no hosts;
/// `None` otherwise.
pub fn tasks_of_slurm(lookup: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let (list, tasks, this) = (lookup(NODES)?, lookup(TASKS)?, lookup("SLURMD_NODENAME")?);
    let (names, counts) = (names(&list).ok()?, counts(&tasks).ok()?);
    let is_alone = nodes_of(&counts, names, lookup) == [this];
    counts.first().copied().filter(|_| is_alone)
}

/// The hosts that these numbers of tasks belong to: those of the job (`names`), or of the step, if the
/// numbers are too few for the job and as many as the step has hosts.
fn nodes_of(counts: &[usize], names: Vec<String>, lookup: impl Fn(&str) -> Option<String>) -> Vec<String> {
    if counts.len() >= names.len() {
        return names;
    }
    let of_step = lookup(STEP_NODES).and_then(|list| self::names(&list).ok());
    of_step.filter(|of_step| of_step.len() == counts.len()).unwrap_or(names)
}

/// The names of a list: `n[1-4,7],m01`.
fn names(list: &str) -> Result<Vec<String>, &'static str> {
    let (mut names, mut rest) = (Vec::new(), list);
    loop {
        let (expanded, after) = pattern(rest)?;
        for name in expanded {
            check_name(&name, false)?;
            names.push(name);
        }
        if names.len() > HOSTS_MAX {
            return Err(TOO_MANY);
        }
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(names),
        }
    }
}

const TOO_MANY: &str = "these are too many hosts";

/// The names of the first pattern of a list, and the rest of the list. A pattern consists of texts and
/// brackets by turns.
fn pattern(list: &str) -> Result<(Vec<String>, &str), &'static str> {
    let (mut names, mut rest) = (vec![String::new()], list);
    loop {
        let end = rest.find([',', '[', ']']).unwrap_or(rest.len());
        names.iter_mut().for_each(|name| *name += &rest[..end]);
        rest = &rest[end..];
        match rest.chars().next() {
            Some('[') => {
                let (inside, after) = rest[1..].split_once(']').ok_or("a bracket is not closed")?;
                let numbers = numbers(inside)?;
                if names.len().saturating_mul(numbers.len()) > HOSTS_MAX {
                    return Err(TOO_MANY);
                }
                let with_all = |name: &String| {
                    numbers.iter().map(|number| format!("{name}{number}")).collect::<Vec<_>>()
                };
                names = names.iter().flat_map(with_all).collect();
                rest = after;
            }
            Some(']') => return Err("a bracket is closed that was not opened"),
            _ => return Ok((names, rest)),
        }
    }
}

/// The numbers in a bracket: `1-4,7`, with their leading zeros.
fn numbers(text: &str) -> Result<Vec<String>, &'static str> {
    let is_number =
        |text: &str| !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if !is_number(first) || !is_number(last) {
            return Err("a bracket holds numbers and ranges of numbers");
        }
        let parse = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
        let (low, high) = (parse(first), parse(last));
        if low > high {
            return Err("a range ends before it begins");
        }
        if high - low >= HOSTS_MAX as u64 {
            return Err(TOO_MANY);
        }
        let width = first.len();
        numbers.extend((low..=high).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// The tasks of each node: `2(x3),1`.
fn counts(text: &str) -> Result<Vec<usize>, &'static str> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, rest)) => (count, rest.strip_suffix(')').and_then(number)),
            None => (part, Some(1)),
        };
        let (count, times) = number(count).zip(times).ok_or("it holds numbers such as 2 and 2(x3)")?;
        if count > SLOTS_MAX || times > HOSTS_MAX || counts.len() + times > HOSTS_MAX {
            return Err("a number is too large");
        }
        counts.resize(counts.len() + times, count);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::*;
    use crate::fuzzing;

    fn variables(nodes: &str, tasks: &str, this: Option<&str>) -> impl Fn(&str) -> Option<String> {
        let [nodes, tasks] = [nodes, tasks].map(str::to_owned);
        let this = this.map(str::to_owned);
        move |name| match name {
            NODES => Some(nodes.clone()),
            TASKS => Some(tasks.clone()),
            "SLURMD_NODENAME" => this.clone(),
            _ => None,
        }
    }

    fn allocated(nodes: &str, tasks: &str, this: Option<&str>) -> Result<Option<String>, String> {
        let found = hosts_of_slurm(variables(nodes, tasks, this));
        found.map(|hosts| hosts.map(|hosts| text(&hosts))).map_err(|error| error.to_string())
    }

    #[test]
    fn an_allocation_of_this_host_alone_has_tasks() {
        let tasks = |nodes, tasks, this| tasks_of_slurm(variables(nodes, tasks, this));
        assert_eq!(tasks("n1", "4", Some("n1")), Some(4));
        assert_eq!(tasks("n1", "4", Some("n2")), None);
        assert_eq!(tasks("n1", "4", None), None);
        assert_eq!(tasks("n[1-2]", "4(x2)", Some("n1")), None);
        assert_eq!(tasks("n1", "x", Some("n1")), None);
        assert_eq!(tasks("n[1", "4", Some("n1")), None);
    }

    #[test]
    fn allocations() {
        for (nodes, tasks, hosts) in [
            ("n1", "4", "n1 4"),
            ("n[1-3]", "2(x3)", "n1 2, n2 2, n3 2"),
            ("n[1-2,7],m01", "2(x3),1", "n1 2, n2 2, n7 2, m01 1"),
            ("n[08-11]", "1(x4)", "n08 1, n09 1, n10 1, n11 1"),
            ("n[009,010-011]-ib", "1(x2),3", "n009-ib 1, n010-ib 1, n011-ib 3"),
            ("r[1-2]n[1-2]", "1(x4)", "r1n1 1, r1n2 1, r2n1 1, r2n2 1"),
            ("a,b[3],c.d", "1,2,3", "a 1, b3 2, c.d 3"),
            ("n[1-2]", "4(x3)", "n1 4, n2 4"),
        ] {
            assert_eq!(allocated(nodes, tasks, None), Ok(Some(hosts.to_owned())), "{nodes} {tasks}");
        }
    }

    #[test]
    fn a_host_alone_is_this_machine() {
        assert_eq!(allocated("n1", "4", Some("n1")), Ok(None));
        assert_eq!(allocated("n1", "4", Some("n2")), Ok(Some("n1 4".to_owned())));
        assert_eq!(allocated("n[1-2]", "4(x2)", Some("n1")), Ok(Some("n1 4, n2 4".to_owned())));
        assert!(hosts_of_slurm(|_| None).unwrap().is_none());
    }

    #[test]
    fn a_step_with_fewer_nodes_than_its_job() {
        let within = |step: &'static str, tasks, this| {
            let of_job = variables("n[1-3]", tasks, this);
            move |name: &str| if name == STEP_NODES { Some(step.to_owned()) } else { of_job(name) }
        };
        let hosts = |step, tasks, this| {
            let found = hosts_of_slurm(within(step, tasks, this)).map_err(|error| error.to_string());
            found.map(|hosts| hosts.map(|hosts| text(&hosts)))
        };
        assert_eq!(hosts("n2", "4", Some("n2")), Ok(None), "the step is on this host alone");
        assert_eq!(tasks_of_slurm(within("n2", "4", Some("n2"))), Some(4));
        assert_eq!(hosts("n2", "4", Some("n1")), Ok(Some("n2 4".to_owned())));
        assert_eq!(tasks_of_slurm(within("n2", "4", Some("n1"))), None);
        assert_eq!(hosts("n[2-3]", "4(x2)", Some("n2")), Ok(Some("n2 4, n3 4".to_owned())));
        assert_eq!(tasks_of_slurm(within("n[2-3]", "4(x2)", Some("n2"))), None);
        assert_eq!(hosts("n2", "4(x3)", Some("n2")), Ok(Some("n1 4, n2 4, n3 4".to_owned())), "of the job");
        for step in ["n[2-3]", "n[2", ""] {
            assert!(hosts(step, "4", Some("n2")).unwrap_err().contains("fewer nodes"), "{step}");
        }
    }

    #[test]
    fn lists_that_are_refused() {
        for (nodes, tasks, part) in [
            ("", "1", "SLURM_JOB_NODELIST=\"\""),
            ("n[1-2", "1(x2)", "a bracket is not closed"),
            ("n1-2]", "1(x2)", "was not opened"),
            ("n[2-1]", "1(x2)", "ends before it begins"),
            ("n[]", "1", "a bracket holds numbers"),
            ("n[a-b]", "1", "a bracket holds numbers"),
            ("n[1-]", "1", "a bracket holds numbers"),
            ("n[1--2]", "1", "a bracket holds numbers"),
            ("n[0-99999999999]", "1", "too many hosts"),
            ("n[1-1000000],m[1-1000000]", "1", "too many hosts"),
            ("r[1-2000]n[1-2000]", "1", "too many hosts"),
            ("a,", "1", "a host has a name"),
            ("a b", "1", "letters, digits"),
            ("-a", "1", "does not begin with a dash"),
            ("n[1-2]", "1", "fewer nodes"),
            ("n1", "", "SLURM_TASKS_PER_NODE=\"\""),
            ("n1", "x", "numbers such as"),
            ("n1", "0", "numbers such as"),
            ("n1", "2(x)", "numbers such as"),
            ("n1", "2(x3", "numbers such as"),
            ("n1", "2(3)", "numbers such as"),
            ("n1", "1(x99999999)", "too large"),
        ] {
            let text = allocated(nodes, tasks, None).unwrap_err();
            assert!(text.contains(part) && text.contains("--hosts"), "{nodes} {tasks}: {text}");
        }
    }

    #[test]
    fn fuzz_allocations() {
        let examples = ["n[1-2,7],m01", "n[009,010-011]-ib", "r[1-2]n[1-2]", "2(x3),1", "4(x2)"];
        fuzzing::fuzz_with(10, &examples, |input| {
            let text = String::from_utf8_lossy(input);
            let _ = names(&text);
            let _ = counts(&text);
        });
    }
}

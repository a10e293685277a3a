//! The examples in C and C++: each is built by the command of its first lines, with warnings as errors, runs
//! as they say, and prints what they say.

use std::fs;
use std::path::Path;

use crate::common::{C_FLAGS, CXX_FLAGS, Ended, compiled, root, run};

/// The comment at the head of an example.
pub struct Head {
    /// The words after `Build:`.
    pub build: Vec<String>,
    /// The number of PEs of the command after `Run:`.
    pub pes: usize,
    /// The lines after `Prints:`.
    pub output: String,
}

/// The head of an example, in which a comment begins with `mark`.
pub fn head(file: &Path, mark: &str) -> Head {
    let source = fs::read_to_string(file).unwrap();
    // The first line of a comment in C begins with other characters.
    let lines =
        || source.lines().skip(1).map_while(|line| line.strip_prefix(mark)).filter(|line| *line != "/");
    let field = |name: &str| lines().find_map(|line| line.trim().strip_prefix(name)).unwrap().trim();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let run = words(field("Run:"));
    let pes = run.iter().position(|word| word == "-n").expect("a number of PEs") + 1;
    let output = lines().skip_while(|line| line.trim() != "Prints:").skip(1);
    let output: String = output.map(|line| format!("{}\n", line.strip_prefix("   ").unwrap())).collect();
    assert!(!output.is_empty(), "{} prints nothing", file.display());
    Head { build: words(field("Build:")), pes: run[pes].parse().unwrap(), output }
}

/// Runs an example that has been built.
#[track_caller]
fn check(file: &Path, head: &Head, program: &Path) {
    for variables in [&[][..], &[("PELAGO_SIM_NODES", "2")]] {
        let Ended { status, stdout, stderr, line } = run(program, head.pes, variables);
        let printed = (status, stdout.as_str(), stderr.as_str());
        assert_eq!(printed, (0, head.output.as_str(), ""), "{}: {line}", file.display());
    }
}

#[test]
fn examples_print_what_they_say() {
    let mut count = 0;
    for folder in ["shmem/examples", "mpi/examples"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let file = entry.unwrap().path();
            let (mark, usual) = match file.extension().unwrap().to_str().unwrap() {
                "c" => (" *", &C_FLAGS),
                "cpp" => ("//", &CXX_FLAGS),
                // It is run by the tests of the Python package.
                _ => continue,
            };
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.lines().count() <= 80, "{} has more than 80 lines", file.display());
            let head = head(&file, mark);
            let name = file.file_name().unwrap().to_str().unwrap();
            let [wrapper, flags @ .., _, _] = &head.build[..] else { panic!("{:?}", head.build) };
            let given = flags.iter().map(String::as_str).filter(|&flag| flag != name && flag != "-O2");
            // Flags stand in front of the file here, where a library counts only with this one.
            let all = ["-Wl,--no-as-needed"].into_iter().chain(given).chain(usual.iter().copied());
            let program = compiled(wrapper, &file, &all.collect::<Vec<_>>());
            check(&file, &head, &program);
            count += 1;
        }
    }
    assert!(count >= 9, "only {count} examples were found");
}

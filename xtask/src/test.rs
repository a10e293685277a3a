//! `cargo xtask test`: the tiers of tests.
//!
//! Invariant: the quick tier needs Rust, gcc and crates.io, and neither root nor a package beyond them. The
//! full tier adds the tests behind the feature `full` of each crate that has one; it installs the packages
//! that they need if it has the rights, and fails if a package is missing; no test is skipped.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{Rows, Step, Work, run_beside};
use crate::tsan;
use crate::workspace::{ALL_OPTIONAL, Package, cargo, metadata};

/// The requirements of the full tier, with the Debian packages that provide them.
const NEEDS: [(Need, &str); 16] = [
    (Need::Program("mpiexec.hydra"), "mpich"),
    (Need::Program("mpirun.openmpi"), "openmpi-bin"),
    (Need::Header("pmix.h", "pmix2/include"), "libpmix-dev"),
    (Need::Program("valgrind"), "valgrind"),
    (Need::Program("gdb"), "gdb"),
    (Need::Program("perf"), "linux-perf"),
    (Need::Program("cmake"), "cmake"),
    (Need::Program("python3"), "python3"),
    (Need::Python("import ensurepip"), "python3-venv"),
    (Need::Python("from sysconfig import get_path; open(get_path('include') + '/Python.h')"), "python3-dev"),
    (Need::Header("rdma/fabric.h", ""), "libfabric-dev"),
    (Need::Program("fi_info"), "libfabric-bin"),
    (Need::Program("ip"), "iproute2"),
    (Need::Program("nft"), "nftables"),
    (Need::Program("slurmd"), "slurm-wlm"),
    (Need::Program("munged"), "munge"),
];

/// The way to check whether a requirement is installed.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    /// A program, by its name in PATH.
    Program(&'static str),
    /// A header, by its name in gcc's include path or in a folder beside Debian's libraries.
    Header(&'static str, &'static str),
    /// A Python statement that runs without an error.
    Python(&'static str),
}

/// The limit of waits for a PE in tests, in seconds: a hang becomes a failure whose message names the event.
const WAIT_LIMIT_SECONDS: &str = "120";

/// Runs the quick tier, and then the additional tests if `full`.
pub fn run(full: bool) -> Result<()> {
    // A shell makes its background processes ignore SIGINT, and Python ignores SIGXFSZ. Child processes
    // inherit that, and tests cause both.
    for signal in [libc::SIGINT, libc::SIGXFSZ] {
        // SAFETY: the default action installs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let metadata = metadata()?;
    let quick = vec![Step { name: "tests", work: Work::Tests(quick_tests()) }];
    let mut rows = run_beside(quick, checks(&metadata.target_directory)?)?;
    if full {
        let packed = metadata.target_directory.join("packed");
        forget_packed(&cargo_home()?, &packed, &metadata.packages)?;
        let full = vec![
            Step { name: "packages", work: Work::Call("apt-get install", install_needs) },
            Step { name: "full", work: Work::Tests(full_tests(&metadata.packages)?) },
            Step { name: "plain", work: Work::Tests(tests(&PLAIN)) },
            Step { name: "publish", work: Work::Command(package(&metadata.packages, &packed)) },
        ];
        rows.run(full);
    }
    rows.summary()
}

/// The tests of builds without encryption, which is what a user's crate has by default. All other tests have
/// the feature, because cargo gives a crate the features that any of the packages asks for.
const PLAIN: [&str; 10] = [
    "-p",
    "pelago-fabric",
    "-p",
    "pelago-tests",
    "--no-default-features",
    "--lib",
    "--test",
    "jobs",
    "--",
    "encrypt",
];

/// The cost of an input that is sent over a connection, relative to one that is passed to a function.
const CONNECTION_COST: u64 = 20;

/// Runs the fuzzing tests with this number of inputs each, then ThreadSanitizer and Miri.
pub fn run_deep(inputs: u64) -> Result<()> {
    let mut fuzz =
        cargo(&["test", "-p", "pelago-boot", "-p", "pelago-core", "-p", "pelago-cli", "--lib", "--bins"]);
    fuzz.args(["fuzz_", "--", "--nocapture"]).env("PELAGO_FUZZ_INPUTS", inputs.to_string());
    let mut frames = cargo(&["test", "-p", "pelago-fabric", "--release", "--lib", "fuzz_"]);
    frames.env("PELAGO_FUZZ_INPUTS", (inputs / CONNECTION_COST).to_string());
    let mut rows = Rows::default();
    rows.run(vec![
        Step { name: "fuzz", work: Work::Tests(fuzz) },
        Step { name: "frames", work: Work::Tests(frames) },
        Step { name: "tsan", work: Work::Call("cargo xtask tsan", tsan::run) },
        Step { name: "miri", work: Work::Tests(miri()) },
    ]);
    rows.summary()
}

/// The unit tests of `fabric` that Miri can run, under Miri: not those that map memory, load libraries,
/// communicate with other processes or depend on time.
fn miri() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri", "test", "-p", "pelago-fabric", "--lib", "--"]);
    for name in MIRI_CANNOT {
        command.args(["--skip", name]);
    }
    for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(variable);
    }
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    command
}

/// Modules of `fabric` whose tests make system calls.
const MIRI_CANNOT: [&str; 3] = ["shm::segment", "shm::handout", "ofi::"];

/// The checks of the quick tier, which run beside the tests. Steps that compile use a separate target folder,
/// because cargo locks the folder while it compiles; the budgets use the folder of the tests, and wait for
/// its lock.
fn checks(target: &Path) -> Result<Vec<Step>> {
    let own = std::env::current_exe().context("this program has no path")?;
    let own = |task: &str| {
        let mut command = Command::new(&own);
        command.arg(task);
        command
    };
    let lint = target.join("lint");
    let mut clippy =
        cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]);
    clippy.env("CARGO_TARGET_DIR", &lint);
    // The command as a first `cargo run` builds it, without measurements.
    let mut default = cargo(&["clippy", "--package", "pelago-cli", "--", "-D", "warnings"]);
    default.env("CARGO_TARGET_DIR", &lint);
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--features", ALL_OPTIONAL]);
    docs.env("RUSTDOCFLAGS", "-D warnings").env("CARGO_TARGET_DIR", &lint);
    let mut loom = cargo(&["test", "-p", "pelago-fabric", "--release", "--lib", "loom_"]);
    loom.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target.join("loom"));
    // The models run for seconds; optimisation across crates takes a minute, and does not make them faster.
    loom.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    loom.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    Ok(vec![
        Step { name: "format", work: Work::Command(cargo(&["fmt", "--all", "--check"])) },
        Step { name: "tidy", work: Work::Command(own("tidy")) },
        Step { name: "clippy", work: Work::Command(clippy) },
        Step { name: "default", work: Work::Command(default) },
        Step { name: "docs", work: Work::Command(docs) },
        Step { name: "loom", work: Work::Tests(loom) },
        Step { name: "budget", work: Work::Command(own("budget")) },
    ])
}

/// `cargo test` with a time limit for all waits, and with sleeps that only a wake-up ends, so that a lost
/// wake-up is a failure.
fn tests(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test"]);
    command.args(arguments).env("PELAGO_WAIT_LIMIT", WAIT_LIMIT_SECONDS).env("PELAGO_TEST_SLEEPS", "on");
    command
}

/// The tests of the quick tier. Two run at a time for each processor, because many of them wait for seconds.
fn quick_tests() -> Command {
    let mut command = tests(&["--workspace", "--features", ALL_OPTIONAL]);
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        command.env("RUST_TEST_THREADS", (2 * processors).to_string());
    }
    command
}

/// The tests of the crates that have a feature `full`, with this feature.
fn full_tests(packages: &[Package]) -> Result<Command> {
    let with_full = packages.iter().filter(|package| package.features.contains_key("full"));
    let names: Vec<_> = with_full.map(|package| package.name.as_str()).collect();
    ensure!(!names.is_empty(), "no crate has a feature `full`: the full tier would add nothing");
    let mut command = tests(&["--no-fail-fast"]);
    for name in &names {
        command.args(["-p", name]);
    }
    let full = names.iter().map(|name| format!("{name}/full"));
    let features: Vec<_> = full.chain([ALL_OPTIONAL.to_owned()]).collect();
    command.args(["--features", &features.join(",")]);
    Ok(command)
}

/// Packs all crates that are published, and builds each of them from its package in this folder.
fn package(packages: &[Package], target: &Path) -> Command {
    let mut command = cargo(&["package", "--workspace", "--target-dir"]);
    command.arg(target);
    for package in packages.iter().filter(|package| package.publish.as_ref().is_some_and(Vec::is_empty)) {
        command.args(["--exclude", &package.name]);
    }
    command
}

/// The folder in which cargo keeps what it has loaded.
fn cargo_home() -> Result<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).context("HOME is not set")
}

/// Removes what an earlier `cargo package` has unpacked and compiled of these crates. Cargo knows it by name
/// and version alone, and would build the other crates on it although they have changed since.
fn forget_packed(cargo_home: &Path, target: &Path, packages: &[Package]) -> Result<()> {
    for Package { name, .. } in packages {
        for compiled in std::fs::read_dir(target.join("debug/.fingerprint")).into_iter().flatten() {
            let compiled = compiled?;
            if compiled.file_name().to_string_lossy().starts_with(&format!("{name}-")) {
                std::fs::remove_dir_all(compiled.path())?;
            }
        }
    }
    let Ok(registries) = std::fs::read_dir(cargo_home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        // The registry of `cargo package` is a folder: its name begins with the empty name of a host.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for Package { name, version, .. } in packages {
            let unpacked = registry.path().join(format!("{name}-{version}"));
            if unpacked.exists() {
                std::fs::remove_dir_all(&unpacked).with_context(|| format!("{}", unpacked.display()))?;
            }
        }
    }
    Ok(())
}

/// Installs the missing packages, or lists them.
fn install_needs() -> Result<()> {
    let missing = missing_packages(Need::is_met);
    if missing.is_empty() {
        println!("all that the full tier needs is here");
        return Ok(());
    }
    let names = missing.join(" ");
    // SAFETY: geteuid has no arguments and no preconditions, as POSIX promises.
    if unsafe { libc::geteuid() } != 0 {
        bail!("Debian packages are missing; install them: sudo apt-get install {names}");
    }
    let (update, install) = (["update"].as_slice(), ["install", "-y", "--no-install-recommends"].as_slice());
    for arguments in [update, &[install, &missing].concat()] {
        let status =
            Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.with_context(|| format!("cannot run apt-get to install {names}"))?;
        ensure!(status.success(), "apt-get {}: {status}", arguments.join(" "));
    }
    Ok(())
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            Need::Program(name) => {
                let search_path = std::env::var_os("PATH").unwrap_or_default();
                std::env::split_paths(&search_path).any(|folder| folder.join(name).is_file())
            }
            Need::Header(name, folder) => {
                let output = Command::new("gcc").arg("-print-multiarch").output();
                let machine = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
                let folder = Path::new("/usr/lib").join(machine.unwrap_or_default()).join(folder);
                let mut gcc = Command::new("gcc");
                gcc.args(["-E", "-x", "c", "/dev/null", "-include", name, "-I"]).arg(folder);
                gcc.output().is_ok_and(|output| output.status.success())
            }
            Need::Python(text) => {
                let output = Command::new("python3").args(["-c", text]).output();
                output.is_ok_and(|output| output.status.success())
            }
        }
    }
}

fn missing_packages(is_met: impl Fn(Need) -> bool) -> Vec<&'static str> {
    NEEDS.iter().filter(|(need, _)| !is_met(*need)).map(|(_, package)| *package).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn package(name: &str, features: &[&str]) -> Package {
        Package {
            name: name.to_string(),
            features: features.iter().map(|name| (name.to_string(), Vec::new())).collect::<BTreeMap<_, _>>(),
            dependencies: Vec::new(),
            manifest_path: "Cargo.toml".into(),
            ..Package::default()
        }
    }

    #[test]
    fn the_full_tier_runs_exactly_the_crates_that_have_the_feature() {
        let packages =
            [package("a", &["full"]), package("b", &["other"]), package("c", &["default", "full"])];
        let command = full_tests(&packages).unwrap();
        let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let features = format!("a/full,c/full,{ALL_OPTIONAL}");
        assert_eq!(arguments, ["test", "--no-fail-fast", "-p", "a", "-p", "c", "--features", &features]);
    }

    #[test]
    fn only_own_crates_of_the_registry_of_packages_are_forgotten() {
        let home = std::env::temp_dir().join(format!("xtask-home-{}", std::process::id()));
        let sources = home.join("registry/src");
        let kept = ["-1/b-1.0.0", "-1/a-0.9.0", "index.crates.io-2/a-1.0.0"].map(|name| sources.join(name));
        let gone = ["-1/a-1.0.0", "-3/a-1.0.0"].map(|name| sources.join(name));
        kept.iter().chain(&gone).for_each(|folder| std::fs::create_dir_all(folder.join("src")).unwrap());
        let own = Package { version: "1.0.0".into(), ..package("a", &[]) };
        let compiled = ["a-0f", "b-0f"].map(|name| home.join("debug/.fingerprint").join(name));
        compiled.iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        forget_packed(&home, &home, std::slice::from_ref(&own)).unwrap();
        assert!(kept.iter().all(|folder| folder.exists()) && !gone.iter().any(|folder| folder.exists()));
        assert!(!compiled[0].exists() && compiled[1].exists());
        std::fs::remove_dir_all(&home).unwrap();
        forget_packed(&home, &home, &[own]).unwrap();
    }

    #[test]
    fn private_crates_are_not_packed() {
        let private = Package { publish: Some(Vec::new()), ..package("b", &[]) };
        let command = super::package(&[package("a", &[]), private], Path::new("packed"));
        let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments, ["package", "--workspace", "--target-dir", "packed", "--exclude", "b"]);
    }

    #[test]
    fn a_full_tier_that_adds_nothing_is_an_error() {
        assert!(full_tests(&[package("b", &[])]).is_err());
    }

    #[test]
    fn what_is_missing_is_named_by_its_package() {
        let python = ["python3", "python3-venv", "python3-dev"];
        const NETWORKS: [&str; 6] =
            ["libfabric-dev", "libfabric-bin", "iproute2", "nftables", "slurm-wlm", "munge"];
        let launchers = ["mpich", "openmpi-bin", "libpmix-dev", "valgrind", "gdb", "linux-perf", "cmake"];
        let packages = [&launchers[..], &python, &NETWORKS].concat();
        assert_eq!(missing_packages(|_| false), packages);
        assert_eq!(missing_packages(|need| need == Need::Program("mpiexec.hydra")), packages[1..]);
        assert_eq!(missing_packages(|_| true), [""; 0]);
    }

    #[test]
    fn needs_are_looked_for() {
        assert!(Need::Program("sh").is_met() && !Need::Program("no-such-program").is_met());
        assert!(Need::Header("stdio.h", "none").is_met() && !Need::Header("no_such.h", "none").is_met());
        assert!(!Need::Python("import no_such_module").is_met());
    }
}

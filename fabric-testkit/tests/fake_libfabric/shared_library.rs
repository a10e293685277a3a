//! Where the stand-in for libfabric lies (`fabric/examples/ofi_stand_in`), which `cargo test` builds.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The path of the library, for `PELAGO_OFI_LIBRARY` or `Choice::library`: beside the running test program,
/// which lies in `target/<profile>/deps`.
pub fn library() -> String {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program.parent().and_then(Path::parent).map(PathBuf::from);
    let path = folder.expect("test programs lie in a folder").join("examples/libofi_stand_in.so");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fabric/examples/ofi_stand_in");
    let sources = std::fs::read_dir(sources).expect("the folder of its sources is there");
    let newest = sources.map(|source| changed(&source.expect("a source is there").path())).max();
    // Cargo builds examples when it tests all, but not when it is asked for one test program.
    assert!(
        path.is_file() && Some(changed(&path)) >= newest,
        "{} is not there or older than its sources: build it with `cargo build -p pelago-fabric --example \
         ofi_stand_in`, and with --release if this test is run so",
        path.display()
    );
    path.into_os_string().into_string().expect("the path of the target folder is UTF-8")
}

fn changed(path: &Path) -> SystemTime {
    let metadata = std::fs::metadata(path).expect("a file that is there can be asked about");
    metadata.modified().expect("files have a time of their last change")
}

//! The fake libfabric as a shared library, which is opened like libfabric.

use pelago_fabric::ofi::{Choice, Library, Ofi, Survey};
use pelago_fabric::{Event, Provider, Secret, Status};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The path of the library, relative to the running test program in `target/<profile>/deps`.
fn path() -> String {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program.parent().and_then(Path::parent).map(PathBuf::from);
    let path = folder.expect("test programs lie in a folder").join("examples/libfake_libfabric.so");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let newest =
        ["src/fake_libfabric", "src/fake_libfabric/offer", "examples"].into_iter().flat_map(|folder| {
            let sources =
                std::fs::read_dir(manifest.join(folder)).expect("the folder of its sources is there");
            sources.map(|source| changed(&source.expect("a source is there").path()))
        });
    // Cargo builds examples when it runs all tests, but not when it runs one test program.
    assert!(
        path.is_file() && Some(changed(&path)) >= newest.max(),
        "{} is not there or older than its sources: build it with `cargo build -p pelago-fabric-testkit \
         --example fake_libfabric`, and with --release if this test is run so",
        path.display()
    );
    path.into_os_string().into_string().expect("the path of the target folder is UTF-8")
}

fn changed(path: &Path) -> SystemTime {
    let metadata = std::fs::metadata(path).expect("a file that is there can be asked about");
    metadata.modified().expect("files have a time of their last change")
}

#[test]
fn the_shared_library_offers_what_the_built_in_one_does() {
    let path = path();
    let library = Library::open(Some(&path)).unwrap();
    assert_eq!((library.path(), library.version()), (&*path, (1, 17)));
    let choice = Choice { providers: vec!["plain".to_owned()], ..Choice::default() };
    let names = |library| {
        let survey = Survey::of(library, &choice).unwrap();
        survey.finds.into_iter().map(|find| find.offer.provider).collect::<Vec<_>>()
    };
    assert_eq!(names(library), names(pelago_fabric_testkit::fake_libfabric::install()));
    let file = Survey::of(library, &choice).unwrap().file;
    assert_eq!(file, Some(std::fs::canonicalize(&path).unwrap()));
}

#[test]
fn messages_arrive_through_the_shared_library() {
    let secret = Secret::draw().unwrap();
    for provider in ["plain", "like-verbs", "like-cxi"] {
        let (library, providers) = (Some(path()), vec![provider.to_owned()]);
        let choice = Choice { library, providers, ..Choice::default() };
        let mut ends = [0, 1].map(|me| Ofi::open(me, 2, &choice, secret).unwrap());
        let addresses = ends.each_ref().map(|end| end.address().unwrap());
        ends.iter_mut().for_each(|end| end.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap());
        assert_eq!(ends[0].send(1, 42, b"through the library"), Status::Done);
        let mut arrived = Vec::new();
        for _ in 0..1000 {
            ends[0].progress(&mut |event| panic!("{event:?}")).unwrap();
            let mut handle = |event: Event<'_>| match event {
                Event::Message { from, header, payload } => arrived.push((from, header, payload.to_vec())),
                event => panic!("{event:?}"),
            };
            ends[1].progress(&mut handle).unwrap();
        }
        assert_eq!(arrived, [(0, 42, b"through the library".to_vec())], "{provider}");
    }
}

//! Arguments of procedures are owned values that can be sent.

fn main() {
    pelago::spmd(1, |_| {
        let mut handlers = pelago::am::Handlers::new();
        handlers.add_procedure("count", |_, _word: &str| ());
    })
    .unwrap();
}

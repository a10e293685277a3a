//! Runs a body both ways: PEs as threads and PEs as processes.

/// `both_ways! { name(4): body; ... }` makes tests `name::threads` and `name::processes` of the
/// function `body(&World)`.
#[macro_export]
macro_rules! both_ways {
    ($($name:ident($n_pes:expr): $body:ident;)+) => {
        $(mod $name {
            #[test]
            fn threads() {
                pelago::spmd($n_pes, super::$body).unwrap();
            }

            #[test]
            fn processes() {
                pelago::processes!($n_pes, super::$body);
            }
        })+
    };
}

//! The table of the interface as data. The files of `shmem/src/api` are included with other definitions of
//! `api!` and of the tables of types: these generate constants, where those of the library generate functions
//! (`shmem/src/expand.rs`).
//!
//! Invariant: keywords of the table are kept unchanged; only `prototype.rs` interprets them.

/// A family of functions: one line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub scope: &'static str,
    pub kind: &'static str,
    /// The rows of its table of types; empty for a single function.
    pub rows: &'static [Row],
    pub name: &'static str,
    pub suffix: &'static str,
    /// Names and types, in the keywords of the table.
    pub arguments: &'static [(&'static str, &'static str)],
    pub result: &'static str,
    /// The lines of documentation above it.
    pub remarks: &'static [&'static str],
}

/// A row of a table of types: its part of the function's name, and the C type.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub part: &'static str,
    pub c_type: &'static str,
}

macro_rules! api {
    ($(
        $(#[$attribute:meta])*
        $scope:ident $kind:ident $(($table:ident))? $name:literal $($suffix:literal)?: $body:path,
        ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )+) => {
        pub(super) const FAMILIES: &[super::Family] = &[$(super::Family {
            scope: stringify!($scope),
            kind: stringify!($kind),
            rows: table_rows!($($table)?),
            name: $name,
            suffix: concat!("" $(, $suffix)?),
            arguments: &[$((stringify!($argument), stringify!($type))),*],
            result: concat!("" $(, stringify!($result))?),
            remarks: &[$(stringify!($attribute)),*],
        }),+];
    };
}

macro_rules! table_rows {
    () => {
        &[]
    };
    ($table:ident) => {
        $table! { rows_as_data, }
    };
}

macro_rules! rows_as_data {
    ([$(($part:literal, $rust:ty, $c:literal)),+ $(,)?]) => {
        &[$($crate::header::table::Row { part: $part, c_type: $c }),+]
    };
}

#[macro_use]
#[path = "../../../shmem/src/types.rs"]
mod types;

macro_rules! chapters {
    ($($path:literal $name:ident),+ $(,)?) => {
        $(#[path = $path] #[allow(unused_imports, reason = "the library's functions need more")] mod $name;)+

        /// The chapters of the interface, in the order of the standard, and the extensions.
        pub const CHAPTERS: &[(&str, &[Family])] = &[$((stringify!($name), $name::FAMILIES)),+];
    };
}

chapters! {
    "../../../shmem/src/api/setup.rs" setup,
    "../../../shmem/src/api/memory.rs" memory,
    "../../../shmem/src/api/team.rs" team,
    "../../../shmem/src/api/context.rs" context,
    "../../../shmem/src/api/rma.rs" rma,
    "../../../shmem/src/api/strided.rs" strided,
    "../../../shmem/src/api/amo.rs" amo,
    "../../../shmem/src/api/signal.rs" signal,
    "../../../shmem/src/api/session.rs" session,
    "../../../shmem/src/api/collective.rs" collective,
    "../../../shmem/src/api/p2p.rs" p2p,
    "../../../shmem/src/api/order.rs" order,
    "../../../shmem/src/api/lock.rs" lock,
    "../../../shmem/src/api/cache.rs" cache,
    "../../../shmem/src/api/extension.rs" extension,
}

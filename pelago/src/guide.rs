//! The guide: how to write programs with Pelago, from the first one to several machines.
//!
//! The pages, in their order:
//! 1. [Start in ten minutes](start)
//! 2. Concepts: [PEs, memory, teams](concepts); [completion and order](order)
//! 3. Tutorial: [a ring](ring), [Jacobi](jacobi), [a histogram by messages](histogram), [a work queue by
//!    atomics](queue), [several nodes](nodes), [C programs](c)
//! 4. From other interfaces: [MPI](from_mpi), [OpenSHMEM](from_openshmem), [UPC and GASNet](from_upc)
//! 5. Reference: [where the time goes](profile), [installing](install), [settings], [tuning], [finding
//!    errors](errors), [the API by task](api)
//!
//! `mdbook build pelago/guide` makes a book of the same pages. Their Rust code is tested as documentation,
//! and their commands by `cli/tests/command/pages/mod.rs`.

#[cfg(doc)]
use crate::*;

/// Definitions of the links between pages, in rustdoc. They stand in front of the definitions at the end of a
/// page, which are for the book; of two definitions the first one counts.
macro_rules! links {
    () => {
        "[start]: crate::guide::start\n\
         [concepts]: crate::guide::concepts\n\
         [order]: crate::guide::order\n\
         [ring]: crate::guide::ring\n\
         [jacobi]: crate::guide::jacobi\n\
         [histogram]: crate::guide::histogram\n\
         [queue]: crate::guide::queue\n\
         [nodes]: crate::guide::nodes\n\
         [c]: crate::guide::c\n\
         [install]: crate::guide::install\n\
         [from_mpi]: crate::guide::from_mpi\n\
         [from_openshmem]: crate::guide::from_openshmem\n\
         [from_upc]: crate::guide::from_upc\n\
         [settings]: crate::guide::settings\n\
         [tuning]: crate::guide::tuning\n\
         [profile]: crate::guide::profile\n\
         [errors]: crate::guide::errors\n\
         [api]: crate::guide::api\n\n"
    };
}

/// Makes a module of each page.
macro_rules! pages {
    ($($name:ident: $file:literal,)+) => {
        $(
            #[doc = links!()]
            #[doc = include_str!($file)]
            pub mod $name {}
        )+
    };
}

pages! {
    start: "../guide/start.md",
    concepts: "../guide/concepts.md",
    order: "../guide/order.md",
    ring: "../guide/ring.md",
    jacobi: "../guide/jacobi.md",
    histogram: "../guide/histogram.md",
    queue: "../guide/queue.md",
    nodes: "../guide/nodes.md",
    c: "../guide/c.md",
    from_mpi: "../guide/from_mpi.md",
    from_openshmem: "../guide/from_openshmem.md",
    from_upc: "../guide/from_upc.md",
    install: "../guide/install.md",
    settings: "../guide/settings.md",
    tuning: "../guide/tuning.md",
    profile: "../guide/profile.md",
    errors: "../guide/errors.md",
    api: "../guide/api.md",
}

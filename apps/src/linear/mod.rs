//! The common parts of the applications of dense linear algebra: grids of PEs, the block-cyclic distribution,
//! blocks of memory and the local kernel that computes on them, random matrices, and the verification.
//! Invariant: a matrix depends on its order and its number alone, not on the PEs or the distribution.

use pelago::Result;
use pelago::prelude::*;

use self::kernel::Kernel;
use self::openblas::OpenBlas;
use crate::choice::Named;
use crate::collect;

pub(crate) mod block;
pub(crate) mod cyclic;
pub(crate) mod elements;
pub(crate) mod fetch;
pub(crate) mod grid;
pub(crate) mod kernel;
pub(crate) mod layout;
#[cfg(test)]
pub(crate) mod naive;
pub(crate) mod openblas;
pub(crate) mod processor;
pub(crate) mod releases;
pub(crate) mod report;
pub(crate) mod residual;
pub(crate) mod speed;

/// The local kernel, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelName {
    Rust,
    OpenBlas,
}

impl Named for KernelName {
    const NOUN: &str = "kernel";
    const ALL: &[KernelName] = &[KernelName::Rust, KernelName::OpenBlas];

    fn name(self) -> &'static str {
        match self {
            KernelName::Rust => "rust",
            KernelName::OpenBlas => "openblas",
        }
    }
}

impl KernelName {
    /// Collective: the kernel, or why a PE does not have it.
    pub(crate) fn open(self, world: &World) -> Result<Result<Kernel, String>> {
        let kernel = match self {
            KernelName::Rust => Ok(Kernel::Rust),
            KernelName::OpenBlas => OpenBlas::open().map(Kernel::OpenBlas),
        };
        let failures = collect::sum(world, u64::from(kernel.is_err()))?;
        Ok(match kernel {
            Ok(_) if failures > 0 => Err(format!("{failures} PEs cannot use OpenBLAS")),
            kernel => kernel.map_err(|reason| format!("{reason}; --kernel rust needs no library")),
        })
    }
}

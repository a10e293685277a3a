//! The program's global and static variables as symmetric memory (OpenSHMEM 1.6, chapter 3: "global and
//! static C/C++ variables" of the executable are symmetric).
//!
//! Invariant: a PE's variables lie in its part of one symmetric array, and those pages of the part are mapped
//! a second time, where the program has its variables. So the program uses them as usual, and peers access
//! them in the array, like any array, by every route.
//!
//! They are switched over while the library starts: they are copied into the array, and the array's pages are
//! mapped in their place; no thread and no signal handler may run in between. After the last finalisation
//! that mapping stays until the mapping of the next initialisation replaces it. docs/decisions/0019 lists the
//! limits.

mod copy;
mod extent;
pub(crate) mod fork;
mod objects;
mod program_file;
mod sections;
mod system;
mod variables;

use extent::Extent;
use pelago::binding;
use pelago::{Pe, Symmetric, View, World};
use std::sync::OnceLock;
use variables::Variable;

/// Size in bytes of the message in which PEs tell each other why their static data cannot be symmetric.
const WORDS_BYTES: usize = 512;

/// The static data of the program: their addresses, or the reason why they are not symmetric.
pub(crate) struct Statics(Result<Shared, String>);

struct Shared {
    array: Symmetric<'static, u8>,
    extent: Extent,
    /// Read at the first use.
    variables: OnceLock<Vec<Variable>>,
    /// Set when this PE has copied the program's constants into the array, at their first use.
    constants: OnceLock<()>,
}

/// Bytes that the static data take in the symmetric heap.
pub(crate) fn extent_bytes() -> usize {
    // The block's header, and the bytes that alignment skips.
    let overhead = 2 * system::page_bytes();
    Extent::of_this_process().map_or(0, |extent| extent.len_bytes() + overhead)
}

impl Statics {
    /// Shares this PE's static data with the other PEs. Collective; the data of all PEs are shared once all
    /// PEs have passed a barrier after this call, as the caller does when it allocates the heap.
    ///
    /// `is_fresh` tells that the heap of the world was never used. `threads` is the number of threads of this
    /// process without those of the runtime.
    pub(crate) fn share(
        world: &'static World,
        is_fresh: bool,
        threads: std::io::Result<usize>,
    ) -> pelago::Result<Statics> {
        let extent = Extent::of_this_process();
        // In this case the runtime's own thread uses the data that are switched over.
        let is_concerned = extent.as_ref().is_ok_and(Extent::is_self_contained);
        let is_paused = is_concerned && binding::pause_service(world);
        let extent = extent.and_then(|extent| extent.checked(threads));
        let statics = Statics::share_if_all_can(world, is_fresh, extent);
        if is_paused {
            binding::resume_service(world);
        }
        statics
    }

    /// The same, with this PE's static data, or the reason why it cannot share them.
    fn share_if_all_can(
        world: &'static World,
        is_fresh: bool,
        extent: Result<Extent, String>,
    ) -> pelago::Result<Statics> {
        let words = extent.as_ref().map_or([0, 0], |extent| [extent.fingerprint(), extent.len_bytes()]);
        if !binding::is_same_everywhere(world, words) {
            return Ok(Statics(Err(difference(world, &extent)?)));
        }
        let extent = match extent {
            Ok(extent) => extent,
            Err(reason) => return Ok(Statics(Err(reason))),
        };
        let (bytes, page_bytes) = (extent.len_bytes(), system::page_bytes());
        // The same on all PEs, as their heaps are.
        if world.heap_largest_free_bytes() < bytes + 2 * page_bytes {
            let reason = format!(
                "the symmetric heap has no room for their {bytes} bytes: raise SHMEM_SYMMETRIC_SIZE or \
                 PELAGO_HEAP_SIZE"
            );
            return Ok(Statics(Err(reason)));
        }
        let array = world.alloc_aligned::<u8>(bytes, page_bytes)?;
        if !is_fresh {
            system::clear(array.reach().own, bytes, world.fabric().is_some());
        }
        if let Err(error) = switch(&extent, &array) {
            world.abort(1, &format!("mapping {bytes} bytes of static data: {error}"));
        }
        fork::watch(&extent);
        Ok(Statics(Ok(Shared { array, extent, variables: OnceLock::new(), constants: OnceLock::new() })))
    }

    /// The place of a variable of `bytes` bytes: the array, and the offset in it.
    pub(crate) fn find(&self, address: usize, bytes: usize) -> Option<(&View<'static, u8>, usize)> {
        let shared = self.0.as_ref().ok()?;
        Some((&*shared.array, shared.extent.offset(address, bytes)?))
    }

    /// Whether `bytes` bytes at an address are constants of the program, the same on all PEs.
    pub(crate) fn are_constant(&self, address: usize, bytes: usize) -> bool {
        let shared = self.0.as_ref().ok();
        shared.is_some_and(|shared| shared.extent.offset_of_constants(address, bytes).is_some())
    }

    /// The place of a copy of constants, as the source of a collective operation: each member makes its own
    /// before it takes part.
    pub(crate) fn find_constants(&self, address: usize, bytes: usize) -> Option<(&View<'static, u8>, usize)> {
        let shared = self.0.as_ref().ok()?;
        let offset = shared.extent.offset_of_constants(address, bytes)?;
        shared.constants.get_or_init(|| {
            let part = shared.array.reach().own;
            for (data, offset) in shared.extent.constants() {
                // SAFETY: the program's segment can be read, and the array has room for it at the offset,
                // which nobody reads before.
                unsafe {
                    let source = data.start as *const u8;
                    part.wrapping_add(offset).copy_from_nonoverlapping(source, data.len());
                }
            }
        });
        Some((&*shared.array, offset))
    }

    /// Describes the mistake if `bytes` bytes at an address begin in a variable that ends before they do.
    pub(crate) fn problem(&self, address: usize, bytes: usize) -> Option<String> {
        let shared = self.0.as_ref().ok()?;
        let variables = shared.variables.get_or_init(|| variables::of(&objects::loaded()[0]));
        variables::problem(variables, address, bytes)
    }

    /// For messages: their addresses, or the reason why they are not symmetric.
    pub(crate) fn description(&self) -> String {
        match &self.0 {
            Ok(shared) => format!("the program's variables at {}", shared.extent),
            Err(reason) => format!("and static data are not symmetric, as {reason}"),
        }
    }
}

/// Copies the static data into this PE's part of the array, whose memory is zero, and maps that in their
/// place.
fn switch(extent: &Extent, array: &View<'static, u8>) -> std::io::Result<()> {
    let part = array.reach().own;
    let signals = system::block_signals();
    let switch_run = |run: &extent::Run| {
        // No code between these two may write to a static variable. SAFETY: the process has only this thread,
        // and no signal handler runs; the part is large enough for the pages of all runs, its memory is
        // fresh, and both are page-aligned.
        unsafe {
            copy::copy_pages(&run.pages, run.zeros, part.wrapping_add(run.offset));
            let bytes = run.offset..run.offset + run.pages.len();
            array.map_at(bytes, run.pages.start as *mut u8)
        }
    };
    let outcome = extent.runs().iter().try_for_each(switch_run);
    system::unblock_signals(&signals);
    outcome
}

/// The reason why the PEs cannot share their static data, if they differ. Collective; the same message on all
/// PEs.
fn difference(world: &World, mine: &Result<Extent, String>) -> pelago::Result<String> {
    let words = match mine {
        Ok(extent) => format!("={:x}-{:x} {}", extent.fingerprint(), extent.len_bytes(), system::program()),
        Err(reason) => format!("!{reason}"),
    };
    let mut bytes = words.into_bytes();
    bytes.resize(WORDS_BYTES, 0);
    let words = world.alloc::<u8>(WORDS_BYTES)?;
    words.put(world.my_pe(), 0, &bytes)?;
    world.barrier();
    let words_of = |pe: Pe| -> pelago::Result<String> {
        let mut bytes = [0; WORDS_BYTES];
        words.get(pe, 0, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
    };
    let first = words_of(0)?;
    for pe in 0..world.n_pes() {
        let other = words_of(pe)?;
        if let Some(reason) = other.strip_prefix('!') {
            return Ok(format!("on PE {pe} {reason}"));
        }
        if other != first && other.split(' ').next() != first.split(' ').next() {
            let path = |words: &str| words.split_once(' ').map_or(String::new(), |(_, path)| path.to_owned());
            return Ok(format!(
                "PE 0 runs {} and PE {pe} runs {}: all PEs must run one program",
                path(&first),
                path(&other)
            ));
        }
    }
    Ok("the PEs run different programs".to_owned())
}

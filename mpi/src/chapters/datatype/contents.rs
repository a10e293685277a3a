//! The calls that have made datatypes: envelopes and contents (MPI 5.0, section 5.1.13).
//!
//! Invariant: the numbers of a call in its form with larger integers are large counts, all others integers
//! and addresses, each in the order of the standard's tables.

use super::{Datatype, find};
use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::convert::IntegerOut;
use std::sync::Arc;

/// A call that has made a datatype.
pub struct Contents {
    combiner: c_int,
    arguments: Arguments,
    types: Vec<Arc<Datatype>>,
}

/// The numbers of a call.
pub struct Arguments {
    is_large: bool,
    integers: Vec<c_int>,
    addresses: Vec<MPI_Aint>,
    counts: Vec<MPI_Count>,
}

impl Arguments {
    pub fn new(is_large: bool) -> Arguments {
        Arguments { is_large, integers: Vec::new(), addresses: Vec::new(), counts: Vec::new() }
    }

    /// With a number that is an `int` in both forms.
    pub fn integer(&mut self, integer: c_int) -> &mut Arguments {
        self.integers.push(integer);
        self
    }

    /// With a number that is an `int` in the usual form.
    pub fn count(&mut self, count: i64) -> &mut Arguments {
        match self.is_large {
            true => self.counts.push(count),
            false => self.integers.push(count as c_int),
        }
        self
    }

    pub fn counts(&mut self, counts: &[i64]) -> &mut Arguments {
        counts.iter().fold(self, |arguments, &count| arguments.count(count))
    }

    /// With a number that is an address in the usual form.
    pub fn address(&mut self, address: i64) -> &mut Arguments {
        match self.is_large {
            true => self.counts.push(address),
            false => self.addresses.push(address as MPI_Aint),
        }
        self
    }

    pub fn addresses(&mut self, addresses: &[i64]) -> &mut Arguments {
        addresses.iter().fold(self, |arguments, &address| arguments.address(address))
    }

    /// The call with these numbers.
    pub fn of(self, combiner: c_int, types: Vec<Arc<Datatype>>) -> Contents {
        Contents { combiner, arguments: self, types }
    }
}

impl Contents {
    pub fn combiner(&self) -> c_int {
        self.combiner
    }

    pub fn types(&self) -> &[Arc<Datatype>] {
        &self.types
    }

    /// All numbers, in the order of the arguments of the call.
    pub fn numbers(&self) -> Vec<i64> {
        let Arguments { integers, addresses, counts, .. } = &self.arguments;
        let integers: Vec<i64> = integers.iter().map(|&integer| integer.into()).collect();
        let addresses: Vec<i64> = addresses.iter().map(|&address| address as i64).collect();
        // In the large form, some arguments of arrays are integers and lie around the counts.
        let before = match self.combiner {
            MPI_COMBINER_SUBARRAY if !counts.is_empty() => 1,
            MPI_COMBINER_DARRAY if !counts.is_empty() => 3,
            _ => integers.len(),
        };
        let (first, last) = integers.split_at(before.min(integers.len()));
        [first, counts, &addresses, last].concat()
    }
}

/// The lengths of the lists of arguments, and the combiner.
struct Envelope {
    integers: usize,
    addresses: usize,
    counts: usize,
    types: usize,
    combiner: c_int,
}

impl Datatype {
    fn envelope(&self) -> Envelope {
        match &self.contents {
            None => Envelope { integers: 0, addresses: 0, counts: 0, types: 0, combiner: MPI_COMBINER_NAMED },
            Some(contents) => Envelope {
                integers: contents.arguments.integers.len(),
                addresses: contents.arguments.addresses.len(),
                counts: contents.arguments.counts.len(),
                types: contents.types.len(),
                combiner: contents.combiner,
            },
        }
    }
}

/// Refuses a datatype that the usual form of a call cannot describe.
fn check_small(envelope: &Envelope, call: &str) -> Result {
    ensure!(
        envelope.counts == 0,
        MPI_ERR_TYPE,
        "the datatype was made by a call with large counts. Use {call}_c"
    );
    Ok(())
}

/// Stores the results of the two forms.
unsafe fn put_envelope(
    envelope: &Envelope,
    places: [(&str, IntegerOut, usize); 3],
    combiner: *mut c_int,
) -> Result {
    for (name, place, _) in &places {
        ensure!(!place.is_null(), MPI_ERR_ARG, "{name} is null. Give the place of the result");
    }
    let combiner = output("combiner", combiner)?;
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        places.iter().for_each(|(_, place, number)| place.set(*number as i64));
        combiner.write(envelope.combiner);
    }
    Ok(())
}

/// `MPI_Type_get_envelope`.
pub unsafe fn type_get_envelope(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    num_integers: *mut c_int,
    num_addresses: *mut c_int,
    num_datatypes: *mut c_int,
    combiner: *mut c_int,
) -> Result {
    let envelope = find(datatype)?.envelope();
    check_small(&envelope, "MPI_Type_get_envelope")?;
    let places = [
        ("num_integers", num_integers.into(), envelope.integers),
        ("num_addresses", num_addresses.into(), envelope.addresses),
        ("num_datatypes", num_datatypes.into(), envelope.types),
    ];
    // SAFETY: the caller promises what this function requires.
    unsafe { put_envelope(&envelope, places, combiner) }
}

/// `MPI_Type_get_envelope_c`.
pub unsafe fn type_get_envelope_c(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    num_integers: *mut MPI_Count,
    num_addresses: *mut MPI_Count,
    num_large_counts: *mut MPI_Count,
    num_datatypes: *mut MPI_Count,
    combiner: *mut c_int,
) -> Result {
    let envelope = find(datatype)?.envelope();
    let places = [
        ("num_integers", num_integers.into(), envelope.integers),
        ("num_addresses", num_addresses.into(), envelope.addresses),
        ("num_datatypes", num_datatypes.into(), envelope.types),
    ];
    let counts = output("num_large_counts", num_large_counts)?;
    // SAFETY: the caller promises what this function requires.
    unsafe {
        put_envelope(&envelope, places, combiner)?;
        counts.write(envelope.counts as MPI_Count);
    }
    Ok(())
}

/// Copies one list of arguments to an array of the program.
unsafe fn put<T: Copy>(name: &str, list: &[T], room: i64, array: *mut T) -> Result {
    let n = list.len();
    ensure!(
        room >= n as i64,
        MPI_ERR_ARG,
        "there is room for {room} elements in {name}, but there are {n}. Give it the number of the envelope"
    );
    ensure!(n == 0 || !array.is_null(), MPI_ERR_ARG, "{name} is null");
    if n > 0 {
        // SAFETY: the caller's array has room for them.
        unsafe { array.copy_from_nonoverlapping(list.as_ptr(), n) };
    }
    Ok(())
}

/// The contents of a datatype that is not named.
fn contents_of(datatype: MPI_Datatype) -> Result<Arc<Contents>> {
    let contents = find(datatype)?.contents.clone();
    contents.ok_or_else(|| Error::new(MPI_ERR_TYPE, "a named datatype has no contents"))
}

/// A handle for the program: that of a predefined datatype itself, and of others that of a duplicate, which
/// the program frees.
pub fn handle_for_program(datatype: &Datatype) -> Result<MPI_Datatype> {
    match datatype.predefined.get() {
        Some(&handle) => Ok(handle),
        None => Arc::new(datatype.duplicate(datatype.contents.clone())).handle(),
    }
}

/// Gives the program the datatypes of a call: predefined ones themselves, and of others a duplicate, which
/// the program frees.
unsafe fn put_types(contents: &Contents, room: i64, array: *mut MPI_Datatype) -> Result {
    let n = contents.types.len();
    ensure!(
        room >= n as i64 && (n == 0 || !array.is_null()),
        MPI_ERR_ARG,
        "there is no room for {n} datatypes"
    );
    for (i, datatype) in contents.types.iter().enumerate() {
        let handle = handle_for_program(datatype)?;
        // SAFETY: the caller's array has room for them.
        unsafe { array.add(i).write(handle) };
    }
    Ok(())
}

/// `MPI_Type_get_contents`.
pub unsafe fn type_get_contents(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut MPI_Aint,
    datatypes: *mut MPI_Datatype,
) -> Result {
    check_small(&find(datatype)?.envelope(), "MPI_Type_get_contents")?;
    let contents = contents_of(datatype)?;
    let arguments = &contents.arguments;
    // SAFETY: the caller's arrays have the room that it says.
    unsafe {
        put("array_of_integers", &arguments.integers, max_integers.into(), integers)?;
        put("array_of_addresses", &arguments.addresses, max_addresses.into(), addresses)?;
        put_types(&contents, max_datatypes.into(), datatypes)
    }
}

/// `MPI_Type_get_contents_c`.
pub unsafe fn type_get_contents_c(
    _mpi: &Mpi,
    datatype: MPI_Datatype,
    max_integers: MPI_Count,
    max_addresses: MPI_Count,
    max_large_counts: MPI_Count,
    max_datatypes: MPI_Count,
    integers: *mut c_int,
    addresses: *mut MPI_Aint,
    large_counts: *mut MPI_Count,
    datatypes: *mut MPI_Datatype,
) -> Result {
    let contents = contents_of(datatype)?;
    let arguments = &contents.arguments;
    // SAFETY: the caller's arrays have the room that it says.
    unsafe {
        put("array_of_integers", &arguments.integers, max_integers, integers)?;
        put("array_of_addresses", &arguments.addresses, max_addresses, addresses)?;
        put("array_of_large_counts", &arguments.counts, max_large_counts, large_counts)?;
        put_types(&contents, max_datatypes, datatypes)
    }
}

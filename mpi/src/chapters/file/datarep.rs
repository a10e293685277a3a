//! Data representations (MPI 5.0, section 14.5): those of the standard, and those that the program has
//! registered.
//!
//! Invariant: a representation is never removed, and no two have one name.

use super::inquiry::MAX_DATAREP;
use crate::abi::*;
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{Error, On, Result, ensure};
use crate::chapters::library::Mpi;
use crate::convert::Conversion;
use std::ffi::CStr;
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Arc, Mutex, PoisonError};

/// The form of data in a file.
#[derive(Clone)]
pub enum Representation {
    /// As in memory: "native", and "internal", which is the same here.
    Memory(&'static str),
    External32,
    /// By functions of the program.
    Registered(Arc<Registered>),
}

/// A representation of the program.
pub struct Registered {
    name: String,
    read: Conversion,
    write: Conversion,
    /// The addresses of the function that tells the extent, and of the program's data.
    extent: usize,
    extra_state: usize,
}

static REGISTERED: Mutex<Vec<Arc<Registered>>> = Mutex::new(Vec::new());

const NATIVE: &str = "native";
const INTERNAL: &str = "internal";
const EXTERNAL32: &str = "external32";

/// The name of a representation.
pub unsafe fn name_of<'a>(datarep: *const c_char) -> Result<&'a str> {
    ensure!(!datarep.is_null(), MPI_ERR_ARG, "datarep is null. Give a name such as \"native\"");
    // SAFETY: the caller's pointer is that of a string.
    let name = unsafe { CStr::from_ptr(datarep) };
    let name = name.to_str().ok().filter(|name| !name.is_empty() && name.len() < MAX_DATAREP);
    name.ok_or_else(|| {
        let text = format!("datarep is no name of 1 to {} characters", MAX_DATAREP - 1);
        Error::new(MPI_ERR_ARG, text)
    })
}

impl Representation {
    /// As in memory.
    pub const NATIVE: Representation = Representation::Memory(NATIVE);

    /// The one with a name.
    pub fn find(name: &str) -> Result<Representation> {
        match name {
            NATIVE => return Ok(Representation::NATIVE),
            INTERNAL => return Ok(Representation::Memory(INTERNAL)),
            EXTERNAL32 => return Ok(Representation::External32),
            _ => {}
        }
        let all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|registered| registered.name == name);
        found.map(|registered| Representation::Registered(Arc::clone(registered))).ok_or_else(|| {
            let text = format!(
                "there is no data representation {name:?}. Give \"native\", \"internal\", \"external32\" or \
                 one of MPI_Register_datarep"
            );
            Error::new(MPI_ERR_UNSUPPORTED_DATAREP, text)
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Representation::Memory(name) => name,
            Representation::External32 => EXTERNAL32,
            Representation::Registered(registered) => &registered.name,
        }
    }

    /// Whether the bytes in the file are those in memory.
    pub fn is_memory(&self) -> bool {
        matches!(self, Representation::Memory(_))
    }

    /// The form of a datatype in the file.
    pub fn in_file(&self, mpi: &Mpi, of: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        match self {
            Representation::Memory(_) => Ok(Arc::clone(of)),
            Representation::External32 => datatype::in_file(mpi, of, &mut |basic| Ok(basic.external_size())),
            Representation::Registered(own) => datatype::in_file(mpi, of, &mut |basic| own.bytes(basic)),
        }
    }
}

impl Registered {
    fn extra_state(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.extra_state)
    }

    /// The bytes of a predefined datatype in the file.
    fn bytes(&self, basic: &Datatype) -> Result<usize> {
        let mut extent: MPI_Aint = 0;
        let handle = datatype::handle_for_program(basic)?;
        let function = with_exposed_provenance_mut(self.extent);
        let (at, state) = (MPI_Datarep_extent_function::at, self.extra_state());
        // SAFETY: the program has passed a function of this type.
        let code = unsafe { at(function)(handle, &raw mut extent, state) };
        check("extent", code)?;
        usize::try_from(extent).map_err(|_| {
            let text = format!("the extent function of {:?} has given the extent {extent}", self.name);
            Error::new(MPI_ERR_CONVERSION, text)
        })
    }

    /// The bytes of an element of any datatype in the file, one elementary type after the other.
    pub fn size(&self, of: &Datatype) -> Result<usize> {
        let (mut bytes, mut outcome) = (0, Ok(()));
        of.for_each_named_run(1, |named, n| {
            match datatype::find(named).and_then(|basic| self.bytes(basic)) {
                Ok(one) => bytes += n * one,
                Err(error) => outcome = Err(error),
            }
        });
        outcome.map(|()| bytes)
    }

    /// The items in the first bytes of a file form, and their bytes in memory.
    pub fn items_in(&self, of: &Datatype, count: usize, in_file: usize) -> Result<(usize, usize)> {
        let (mut rest, mut items, mut native, mut outcome) = (in_file, 0, 0, Ok(()));
        of.for_each_named_run(count, |named, n| {
            let found = datatype::find(named);
            match found.and_then(|basic| Ok((basic.size(), self.bytes(basic)?))) {
                Ok((in_memory, one)) => {
                    let whole = rest.checked_div(one).map_or(n, |fit| fit.min(n));
                    items += whole;
                    native += whole * in_memory;
                    rest = if whole < n { 0 } else { rest - whole * one };
                }
                Err(error) => outcome = Err(error),
            }
        });
        outcome.map(|()| (items, native))
    }

    /// Converts items from the file's form to the program's buffer; `false` if that is the program's form.
    ///
    /// # Safety
    /// The buffer has room for the items of the datatype, and the file form has their data.
    pub unsafe fn read(
        &self,
        (buffer, datatype): (*mut u8, MPI_Datatype),
        items: usize,
        in_file: *mut u8,
    ) -> Result<bool> {
        if self.read.is_null() {
            return Ok(false);
        }
        // SAFETY: the caller's promise; the program has passed the function.
        let code = unsafe {
            self.read.call(buffer.cast(), datatype, items as i64, in_file.cast(), self.extra_state())
        };
        check("read conversion", code).map(|()| true)
    }

    /// The reverse.
    ///
    /// # Safety
    /// As [`read`](Registered::read).
    pub unsafe fn write(
        &self,
        (buffer, datatype): (*const u8, MPI_Datatype),
        items: usize,
        in_file: *mut u8,
    ) -> Result<bool> {
        if self.write.is_null() {
            return Ok(false);
        }
        let buffer = buffer.cast_mut().cast();
        let (into, state) = (in_file.cast(), self.extra_state());
        // SAFETY: the caller promises the buffers; the program has passed the function.
        let code = unsafe { self.write.call(buffer, datatype, items as i64, into, state) };
        check("write conversion", code).map(|()| true)
    }
}

fn check(what: &str, code: c_int) -> Result {
    ensure!(
        code == MPI_SUCCESS,
        MPI_ERR_CONVERSION,
        "the {what} function of the data representation has returned the error code {code}"
    );
    Ok(())
}

/// `MPI_Register_datarep`.
pub unsafe fn register_datarep(
    _mpi: &Mpi,
    datarep: *const c_char,
    read_conversion_fn: Conversion,
    write_conversion_fn: Conversion,
    dtype_file_extent_fn: *mut MPI_Datarep_extent_function,
    extra_state: *mut c_void,
) -> Result {
    let register = || {
        // SAFETY: the caller's pointer is null, or that of a string.
        let name = unsafe { name_of(datarep)? };
        ensure!(
            !dtype_file_extent_fn.is_null(),
            MPI_ERR_ARG,
            "dtype_file_extent_fn is null. Give the function that tells the extents in the file"
        );
        ensure!(
            Representation::find(name).is_err(),
            MPI_ERR_DUP_DATAREP,
            "there is a data representation {name:?} already"
        );
        let registered = Registered {
            name: name.to_owned(),
            read: read_conversion_fn,
            write: write_conversion_fn,
            extent: dtype_file_extent_fn.expose_provenance(),
            extra_state: extra_state.expose_provenance(),
        };
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(registered));
        Ok(())
    };
    register().map_err(|error: Error| error.on(On::File(MPI_FILE_NULL)))
}

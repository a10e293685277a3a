//! OpenBLAS, opened at run time: the local kernel of Debian's ScaLAPACK, for comparisons of communication
//! alone. Invariant: the library is opened once, computes in the calling thread, and is never closed, because
//! it has threads of its own. Source: the reference BLAS and LAPACK, whose argument lists it has.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::block::{Block, BlockMut, Shape};

/// The name under which the system's loader looks for the library.
const NAME: &CStr = c"libopenblas.so.0";

type Gemm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const c_int,
    *const f64,
    *const f64,
    *const c_int,
    *const f64,
    *const c_int,
    *const f64,
    *mut f64,
    *const c_int,
);
type Trsm = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_int,
    *const c_int,
    *const f64,
    *const f64,
    *const c_int,
    *mut f64,
    *const c_int,
);
type Potrf = unsafe extern "C" fn(*const c_char, *const c_int, *mut f64, *const c_int, *mut c_int);
type SetThreads = unsafe extern "C" fn(c_int);

/// The functions of the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenBlas {
    gemm: Gemm,
    trsm: Trsm,
    potrf: Potrf,
}

static OPENED: OnceLock<Result<OpenBlas, String>> = OnceLock::new();

impl OpenBlas {
    /// The library of this system, with one thread.
    pub(crate) fn open() -> Result<Self, String> {
        OPENED.get_or_init(load).clone()
    }

    /// Sets `c`, whose columns are contiguous, to `keep` times itself plus `factor` times a product.
    pub(super) fn multiply(self, factor: f64, a: Block<'_>, b: Block<'_>, keep: f64, c: &mut BlockMut<'_>) {
        let ((a_form, a_leading), (b_form, b_leading)) = (form(a.shape()), form(b.shape()));
        let (rows, inner, columns) = (a.shape().rows, a.shape().columns, b.shape().columns);
        let [rows, inner, columns] = [rows, inner, columns].map(int);
        let c_leading = leading(c.shape());
        // SAFETY: the shapes fit, as the kernel has checked; the elements are valid, and those of `c`, which
        // no other block has meanwhile, for writes. dgemm reads the numbers during the call.
        unsafe {
            (self.gemm)(
                a_form,
                b_form,
                &rows,
                &columns,
                &inner,
                &factor,
                a.start(),
                &a_leading,
                b.start(),
                &b_leading,
                &keep,
                c.start(),
                &c_leading,
            );
        }
    }

    /// Solves X L^T = B, where `x` is B before and X afterwards; the columns of both are contiguous.
    pub(super) fn solve(self, lower: Block<'_>, x: &mut BlockMut<'_>) {
        let [rows, order] = [x.shape().rows, x.shape().columns].map(int);
        let (lower_leading, x_leading) = (leading(lower.shape()), leading(x.shape()));
        let (right, low, transposed, general) = (c"R".as_ptr(), c"L".as_ptr(), c"T".as_ptr(), c"N".as_ptr());
        assert_eq!(lower.shape().rows, x.shape().columns, "the order of a solution");
        // SAFETY: the shapes fit, as checked above; the elements are valid, and those of `x`, which no other
        // block has meanwhile, for writes. dtrsm reads the numbers during the call.
        unsafe {
            (self.trsm)(
                right,
                low,
                transposed,
                general,
                &rows,
                &order,
                &1.0,
                lower.start(),
                &lower_leading,
                x.start(),
                &x_leading,
            );
        }
    }

    /// Factors a block whose columns are contiguous; an error is the first column that is not definite.
    pub(super) fn factor(self, a: &mut BlockMut<'_>) -> Result<(), usize> {
        let (order, leading, mut info) = (int(a.shape().rows), leading(a.shape()), 0);
        assert_eq!(a.shape().rows, a.shape().columns, "a square block");
        // SAFETY: the elements of the square block are valid for writes, and no other block has them
        // meanwhile. dpotrf reads the numbers during the call, and writes `info`.
        unsafe { (self.potrf)(c"L".as_ptr(), &order, a.start(), &leading, &mut info) };
        match info {
            0 => Ok(()),
            column => Err(column as usize - 1),
        }
    }
}

/// The form of an operand, plain or transposed, and its leading dimension.
fn form(shape: Shape) -> (*const c_char, c_int) {
    match shape.row_stride == 1 {
        true => (c"N".as_ptr(), leading(shape)),
        false => (c"T".as_ptr(), leading(shape.transposed())),
    }
}

/// The leading dimension of a block whose columns are contiguous.
fn leading(shape: Shape) -> c_int {
    assert_eq!(shape.row_stride, 1, "the columns of a block are contiguous");
    int(shape.column_stride.max(shape.rows).max(1))
}

fn int(number: usize) -> c_int {
    c_int::try_from(number).expect("OpenBLAS has 32 bits for lengths")
}

fn load() -> Result<OpenBlas, String> {
    // SAFETY: the name ends in 0. The library's initialisers are sound, as the user who installed it has to
    // guarantee.
    let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let failed = |reason: &str| format!("cannot use {}: {reason}", NAME.to_string_lossy());
    if handle.is_null() {
        return Err(failed("the system does not find it (Debian: libopenblas0)"));
    }
    // SAFETY: each symbol is the function of that name, whose C type the alias repeats.
    let functions = unsafe {
        (|| {
            let set_threads: SetThreads = symbol(handle, c"openblas_set_num_threads")?;
            set_threads(1);
            Some(OpenBlas {
                gemm: symbol(handle, c"dgemm_")?,
                trsm: symbol(handle, c"dtrsm_")?,
                potrf: symbol(handle, c"dpotrf_")?,
            })
        })()
    };
    functions.ok_or_else(|| failed("it lacks functions of BLAS or LAPACK"))
}

/// A function of the library.
///
/// # Safety
/// `F` is the type of a pointer to the function of this name.
unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: the handle is that of an open library, and the name ends in 0.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the caller promises that the address is that of a function of type `F`; both have one size.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

//! Strided remote memory access.

use super::*;

api! {
    both generic(RMA) "_iput": crate::strided::iput,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, nelems: size_t, pe: c_int);
    both sized(SIZES) "iput" "": crate::strided::iput,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, nelems: size_t, pe: c_int);
    both generic(RMA) "_ibput": crate::strided::ibput,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t, nblocks: size_t,
        pe: c_int);
    both sized(SIZES) "ibput" "": crate::strided::ibput,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t,
        nblocks: size_t, pe: c_int);
    both generic(RMA) "_iget": crate::strided::iget,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, nelems: size_t, pe: c_int);
    both sized(SIZES) "iget" "": crate::strided::iget,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, nelems: size_t, pe: c_int);
    both generic(RMA) "_ibget": crate::strided::ibget,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t, nblocks: size_t,
        pe: c_int);
    both sized(SIZES) "ibget" "": crate::strided::ibget,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t,
        nblocks: size_t, pe: c_int);
}

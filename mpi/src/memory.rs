//! Memory that programs allocate through the library.

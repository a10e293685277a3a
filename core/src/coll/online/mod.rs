//! The online tuner: the first blocking calls of a class try the forms that an operation may take, the
//! members agree on the fastest, and later calls take it (decision 0062).

pub mod trial;

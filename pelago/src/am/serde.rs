//! The arguments and results of remote procedures that serde can serialise.

use pelago_core::base::datum::Datum;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that travels as `serde` writes it (in the format of `postcard`).
///
/// ```
/// use pelago::am::{Handlers, Serde};
/// use std::collections::BTreeMap;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let mut handlers = Handlers::new();
/// let count = handlers.add_procedure("count", |_, Serde(text): Serde<String>| {
///     let mut words = BTreeMap::<String, u32>::new();
///     text.split_whitespace().for_each(|word| *words.entry(word.to_owned()).or_default() += 1);
///     Serde(words)
/// });
/// world.team().serve(handlers, |am| {
///     let Serde(words) = am.call(1 - am.my_rank(), count, &Serde("to be or not to be".into()))?.wait();
///     assert_eq!(words["be"], 2);
///     Ok::<(), pelago::Error>(())
/// })?
/// # }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Serde<T>(pub T);

impl<T: Serialize + DeserializeOwned> Datum for Serde<T> {
    /// # Panics
    /// If the value reports that it cannot be serialised.
    fn encode(&self, bytes: &mut Vec<u8>) {
        let written = postcard::to_allocvec(&self.0);
        bytes.extend(written.unwrap_or_else(|error| panic!("a value cannot be serialised: {error}")));
    }

    fn decode(bytes: &[u8]) -> Option<Serde<T>> {
        postcard::from_bytes(bytes).ok().map(Serde)
    }
}

//! The provider `tcp`: puts, gets, atomics and messages over TCP connections, in Rust alone.
//!
//! | file | holds |
//! |---|---|
//! | `provider` | the endpoint of a PE |
//! | `domain` | the state that all endpoints of a process share |
//! | `inject` | injected puts of a word |
//! | `progress` | polling, acknowledgements, the end of connections |
//! | `local_pe` | a PE of this process: its memory regions, its inbox |
//! | `peer` | another process: the states of the connection to it |
//! | `connect`, `accept` | how a connection is opened, on either side |
//! | `handshake` | how two processes prove that they belong to the job |
//! | `cipher` | the keys of an encrypted connection |
//! | `stream` | what a connection carries: the bytes of frames, or encrypted records of them |
//! | `business_card` | the addresses of a process |
//! | `send_queue` | frames to be sent, and operations that are not complete |
//! | `receiver` | received bytes, cut into frames |
//! | `serve` | execution of the frames that have arrived |
//! | `completion_queue` | completion counters and events of an endpoint |
//! | `frame` | the format of an operation on the wire |
//! | `datagram` | short frames in datagrams, beside the connection |
//! | `congestion` | the congestion control of connections |
//! | `ports` | the ports at which a process listens |
//! | `watch` | which connections the poller watches |
//! | `socket` | system calls |
//!
//! A connection joins two processes, not two PEs. It is opened when the first operation needs it. All frames
//! between two processes are one sequence, in the order in which the operations were started. The connection
//! carries them, and datagrams beside it carry short ones. A cumulative count acknowledges them. Every frame
//! carries the count of the other direction. If no other frame has carried it until then, a frame of its own
//! does: for puts in the next round of progress that finds no frame, for messages after 16 such rounds or 3
//! messages.

mod accept;
mod business_card;
mod cipher;
mod completion_queue;
mod congestion;
mod connect;
mod datagram;
mod descriptors;
mod domain;
mod frame;
mod handshake;
mod inject;
mod local_pe;
mod peer;
mod ports;
mod progress;
mod provider;
mod receiver;
mod resume;
mod send_queue;
mod serve;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

pub use business_card::addresses;
pub use cipher::CAN_ENCRYPT;
pub use domain::TcpChoice;
pub use inject::TcpInject;
pub use provider::Tcp;

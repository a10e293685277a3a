//! The conformance suite on the provider `tcp`, on the loopback interface: with one PE and with several PEs
//! per process, with and without datagrams, and encrypted.

use pelago_fabric::Secret;
use pelago_fabric::tcp::{Tcp, TcpChoice};
use pelago_fabric_testkit::conformance;
use pelago_fabric_testkit::conformance::{Group, Harness};

/// Short frames travel in datagrams, or all over connections, plain or encrypted.
const DATAGRAMS: u8 = 0;
const PLAIN: u8 = 1;
#[cfg(feature = "encrypt")]
const ENCRYPTED: u8 = 2;

/// With `EACH` PEs per process.
struct OverTcp<const EACH: usize, const CARRIED: u8>;

impl<const EACH: usize, const CARRIED: u8> Harness for OverTcp<EACH, CARRIED> {
    type Endpoint = Tcp;

    const CASES: u32 = 8;
    const TARGET_MUST_CALL: bool = true;
    const INJECTS: bool = true;
    const REMEMBERS_PUTS: bool = false;
    const SIGNALS: bool = true;
    const HAS_WAIT_DESCRIPTOR: bool = true;

    fn open(n_pes: usize) -> Group<Tcp> {
        let secret = Secret::draw().unwrap();
        let choice = TcpChoice {
            is_local: true,
            insists_on_goodbye: true,
            datagrams: CARRIED == DATAGRAMS,
            encrypts: !matches!(CARRIED, DATAGRAMS | PLAIN),
            ..TcpChoice::default()
        };
        let open = |process| Tcp::open(process, EACH, n_pes, &choice, secret).unwrap();
        let endpoints: Vec<Tcp> = (0..n_pes.div_ceil(EACH)).flat_map(open).collect();
        // Packets need more rounds of progress.
        Group::connect(endpoints).with_rounds(20_000_000)
    }
}

conformance! {
    tcp_processes: OverTcp<1, PLAIN>,
    tcp_threads: OverTcp<2, PLAIN>,
    tcp_datagrams: OverTcp<1, DATAGRAMS>,
    tcp_datagrams_threads: OverTcp<2, DATAGRAMS>,
    #[cfg(feature = "encrypt")]
    tcp_encrypted: OverTcp<1, ENCRYPTED>,
    #[cfg(feature = "encrypt")]
    tcp_encrypted_threads: OverTcp<2, ENCRYPTED>,
}

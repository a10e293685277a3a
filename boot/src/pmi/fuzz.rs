//! Fuzz tests: neither side of PMI-1 panics or hangs, whatever bytes the other side sends.

use super::client::Client;
use super::server::Server;
use super::wire::Lines;
use crate::fuzzing;
use rustix::io::write;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use std::time::Duration;

const REQUESTS: [&str; 12] = [
    "cmd=init pmi_version=1 pmi_subversion=1\n",
    "cmd=get_maxes\ncmd=get_appnum\ncmd=get_universe_size\ncmd=get_my_kvsname\n",
    "cmd=put kvsname=pelago key=a-1 value=3:6162\n",
    "cmd=get kvsname=pelago key=a-1\n",
    "cmd=get kvsname=pelago key=PMI_process_mapping\n",
    "cmd=barrier_in\n",
    "cmd=barrier_in \ncmd=barrier_in\n",
    "cmd=note text=6e6f20c3a9\n",
    "cmd=abort exitcode=7 pe=3 message=6869\n",
    "cmd=rest\n",
    "cmd=finalize\n",
    "mcmd=spawn\nnprocs=1\nendcmd\n",
];

#[test]
fn fuzz_the_servers_side() {
    fuzzing::fuzz(&REQUESTS, |input| {
        let (mut server, mut lines, mut answers) = (Server::of_one_node(3), Lines::default(), Vec::new());
        let joined = server.handle(0, REQUESTS[0].trim(), &mut answers);
        let mut dice = fuzzing::Dice(input.len() as u64);
        if lines.push(input) {
            while let Some(line) = lines.pop() {
                let pe = dice.below(3);
                let _ = server.handle(pe, &line, &mut answers);
                let _ = server.stage(pe);
            }
        }
        let _ = (joined, answers.iter().map(|(_, answer)| answer.line().len()).sum::<usize>());
    });
}

const ANSWERS: [&str; 6] = [
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1 pelago=1 kvsname=pelago keylen_max=64 \
     vallen_max=1024\ncmd=get_result rc=0 value=(vector,(0,1,3))\ncmd=get_result rc=0 value=1:6162\n\
     cmd=put_result rc=0\ncmd=barrier_out rc=0\ncmd=finalize_ack rc=0\n",
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes rc=0 kvsname_max=256 keylen_max=64 \
     vallen_max=1024\ncmd=my_kvsname rc=0 kvsname=kvs_1\ncmd=get_result rc=0 value=(vector,(0,2,2),(2,1,1))\n\
     cmd=get_result rc=0 value=2:61\ncmd=get_result rc=0 value=62\ncmd=put_result rc=0\ncmd=barrier_out\n",
    "cmd=maxes kvsname_max=256 keylen_max=9 vallen_max=1 rc=0\n",
    "cmd=get_result rc=-1 msg=no_such_key value=\n",
    "cmd=get_result rc=0 value=99999999:61626364 msg=success\n",
];

#[test]
fn fuzz_the_clients_side() {
    fuzzing::fuzz(&ANSWERS, |input| {
        let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        assert_eq!(write(&theirs, input), Ok(input.len()), "a socket takes a few thousand bytes");
        // No more input follows, so the client does not wait; it still reads the bytes that were written.
        shutdown(&theirs, Shutdown::Write).unwrap();
        let Ok(mut client) = Client::join(ours, Duration::from_secs(60)) else { return };
        let _ = client.nodes(3);
        let _ = client.get("a");
        let _ = client.put("b", &[7; 30]);
        let _ = (client.key_max(), client.launcher_is_ours());
        let _ = client.barrier();
        let _ = client.finalize(input.len() % 2 == 0);
    });
}

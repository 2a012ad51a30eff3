//! Plain TCP transfers in the laboratory: what the network itself gives, with no MPI and no program of ours between.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::lab::Lab;

/// Bytes of each flow: large against tbf's bucket, whose content goes at line rate.
pub const FLOW: usize = 8 << 20;
/// Longest wait of a socket.
const PATIENCE: Duration = Duration::from_secs(10);

/// The host that sends and the one that receives, from 1.
pub type Pair = (usize, usize);

/// All pairs transfer [`FLOW`] bytes at the same time: seconds from the start until each receiver has its last byte.
pub fn run(lab: &Lab, pairs: &[Pair]) -> Vec<f64> {
    let mut ends: Vec<_> = pairs.iter().map(|&pair| connect(lab, pair)).collect();
    thread::scope(|scope| {
        let start = Instant::now();
        let flows: Vec<_> = ends
            .iter_mut()
            .map(|(sender, receiver)| {
                scope.spawn(move || sender.write_all(&vec![0x5a; FLOW]).unwrap());
                scope.spawn(move || {
                    receiver.read_exact(&mut vec![0; FLOW]).unwrap();
                    start.elapsed().as_secs_f64()
                })
            })
            .collect();
        flows.into_iter().map(|flow| flow.join().unwrap()).collect()
    })
}

/// Payload bytes per second of all flows together, until the last one is done.
pub fn together(lab: &Lab, pairs: &[Pair]) -> f64 {
    (FLOW * pairs.len()) as f64 / run(lab, pairs).into_iter().fold(0.0, f64::max)
}

fn connect(lab: &Lab, (from, to): Pair) -> (TcpStream, TcpStream) {
    let listener = lab.inside(to, || TcpListener::bind((format!("10.77.0.{to}"), 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let sender = lab.inside(from, || TcpStream::connect_timeout(&address, PATIENCE).unwrap());
    let (receiver, _) = listener.accept().unwrap();
    sender.set_write_timeout(Some(PATIENCE)).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    (sender, receiver)
}

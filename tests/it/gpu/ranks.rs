//! The stand-in for NCCL between processes: what four ranks exchange, what they may not do, and how it fails.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaStream, result, sys as driver};
use cudarc::nccl::sys;
use cudarc::nccl::sys::ncclResult_t as Code;

use super::cases::{BYTES, command, device, ended, filled, free, read, settle};
use super::stand_in::{ALSO, Told, told, without};

/// The rank of a process, how many there are and the file with the unique id.
const RANK: &str = "TOPOSCOPE_STAND_IN_RANK";
const RANKS: &str = "TOPOSCOPE_TEST_RANKS";
const ID: &str = "TOPOSCOPE_TEST_ID";

/// Messages of an exchange from each to each, and the bytes of one.
const MESSAGES: usize = 50;
const PIECE: usize = 1 << 14;

/// Have ranks do a case together; what they said, and what the two libraries told.
fn together(case: &str, ranks: usize, set: &[(&str, &str)]) -> (Vec<String>, Told, Told) {
    let (report, id) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |rank: usize| {
        let mut command = command(case, report.path());
        command.env(RANK, rank.to_string()).env(RANKS, ranks.to_string()).env(ID, id.path().join("id"));
        command.envs(set.iter().copied()).spawn().unwrap()
    };
    let children: Vec<_> = (0..ranks).map(start).collect();
    let said = children.into_iter().map(ended).collect();
    (said, told(report.path(), "nccl"), told(report.path(), "cuda"))
}

/// What a rank of a case has.
struct Rank {
    number: usize,
    ranks: usize,
    comm: sys::ncclComm_t,
    stream: std::sync::Arc<CudaStream>,
}

fn number(name: &str) -> usize {
    std::env::var(name).unwrap().parse().unwrap()
}

fn ok(code: Code) {
    assert_eq!(code, Code::ncclSuccess);
}

/// Rank 0 makes the id, the others wait for its file.
fn id() -> sys::ncclUniqueId {
    let path = std::env::var(ID).unwrap();
    let path = Path::new(&path);
    let mut id = sys::ncclUniqueId { internal: [0; 128] };
    if number(RANK) == 0 {
        // SAFETY: a place to write.
        ok(unsafe { sys::ncclGetUniqueId(&raw mut id) });
        let bytes: Vec<u8> = id.internal.iter().map(|byte| byte.cast_unsigned()).collect();
        std::fs::write(path.with_extension("new"), bytes).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    } else {
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for (to, byte) in id.internal.iter_mut().zip(std::fs::read(path).unwrap()) {
            *to = byte.cast_signed();
        }
    }
    id
}

fn start() -> Rank {
    let (rank, ranks) = (number(RANK), number(RANKS));
    let (_, stream) = device(rank);
    let mut comm = std::ptr::null_mut();
    // SAFETY: a place to write.
    ok(unsafe { sys::ncclCommInitRank(&raw mut comm, ranks as i32, id(), rank as i32) });
    Rank { number: rank, ranks, comm, stream }
}

impl Rank {
    fn raw(&self) -> sys::cudaStream_t {
        self.stream.cu_stream().cast()
    }

    fn send(&self, from: u64, bytes: usize, to: usize) -> Code {
        let kind = sys::ncclDataType_t::ncclUint8;
        // SAFETY: memory of our own.
        unsafe { sys::ncclSend(from as *const c_void, bytes, kind, to as i32, self.comm, self.raw()) }
    }

    fn receive(&self, to: u64, bytes: usize, from: usize) -> Code {
        let kind = sys::ncclDataType_t::ncclUint8;
        // SAFETY: memory of our own.
        unsafe { sys::ncclRecv(to as *mut c_void, bytes, kind, from as i32, self.comm, self.raw()) }
    }

    fn error(&self) -> Code {
        let mut error = Code::ncclSuccess;
        // SAFETY: a place to write.
        ok(unsafe { sys::ncclCommGetAsyncError(self.comm, &raw mut error) });
        error
    }

    /// End in peace.
    fn end(&self) {
        // SAFETY: once.
        ok(unsafe { sys::ncclCommDestroy(self.comm) });
    }

    /// What hangs goes on once the communicator is aborted.
    fn abort(&self) {
        // SAFETY: once.
        ok(unsafe { sys::ncclCommAbort(self.comm) });
        settle(&self.stream);
    }
}

fn group(calls: impl FnOnce()) -> Code {
    // SAFETY: no arguments.
    ok(unsafe { sys::ncclGroupStart() });
    calls();
    // SAFETY: as above.
    unsafe { sys::ncclGroupEnd() }
}

/// A function that cudarc's NCCL does not have.
unsafe fn function<T: Copy>(name: &str) -> Option<T> {
    // SAFETY: the caller says that this is its type.
    unsafe { sys::culib().get::<T>(name.as_bytes()).ok().map(|found| *found) }
}

pub fn do_case(case: &str) {
    match case {
        "exchange" => exchange(),
        "reduce" => reduce(),
        "split" => split(),
        "put" => put(),
        "mismatch" => mismatch(),
        "ring" => ring(),
        "waits" => waits(),
        "fails to begin" => fails_to_begin(),
        "does not block" => does_not_block(),
        "no put" => assert!(unsafe { function::<*const c_void>("ncclPutSignal") }.is_none()),
        "dies" => dies(),
        case => panic!("{case}: what is that?"),
    }
}

/// Everyone sends to everyone, itself included, more messages than can be told at a time, each of its own.
fn exchange() {
    let own = start();
    let (from, to) = (filled(0, MESSAGES * PIECE), filled(0, own.ranks * MESSAGES * PIECE));
    let mark = |rank: usize, message: usize| (message * 4 + rank) as u8;
    for message in 0..MESSAGES {
        // SAFETY: memory of our own.
        unsafe {
            result::memset_d8_async(from + (message * PIECE) as u64, mark(own.number, message), PIECE, own.stream.cu_stream()).unwrap();
        };
    }
    for _ in 0..3 {
        ok(group(|| {
            for message in 0..MESSAGES {
                for peer in 0..own.ranks {
                    ok(own.send(from + (message * PIECE) as u64, PIECE, peer));
                    ok(own.receive(to + ((peer * MESSAGES + message) * PIECE) as u64, PIECE, peer));
                }
            }
        }));
    }
    settle(&own.stream);
    for (at, piece) in read(to, own.ranks * MESSAGES * PIECE).chunks(PIECE).enumerate() {
        assert!(piece.iter().all(|&byte| byte == mark(at / MESSAGES, at % MESSAGES)), "message {at}");
    }
    free(from);
    free(to);
    own.end();
}

/// A sum in place, a gathering and a broadcast.
fn reduce() {
    let own = start();
    let at = filled(0, BYTES);
    let numbers: Vec<f32> = (0..256).map(|at| at as f32 + own.number as f32).collect();
    // SAFETY: memory of our own.
    unsafe {
        result::memcpy_htod_sync(at, &numbers).unwrap();
        let (raw, kind) = (at as *mut c_void, sys::ncclDataType_t::ncclFloat32);
        ok(sys::ncclAllReduce(raw, raw, 256, kind, sys::ncclRedOp_t::ncclSum, own.comm, own.raw()));
        settle(&own.stream);
        let mut sums = vec![0.0_f32; 256];
        result::memcpy_dtoh_sync(&mut sums, at).unwrap();
        assert!(sums.iter().zip(0..).all(|(&sum, at)| sum.to_bits() == ((4 * at + 6) as f32).to_bits()));
        let gathered = filled(0, 4 * 1024);
        result::memset_d8_async(at, own.number as u8, 1024, own.stream.cu_stream()).unwrap();
        ok(sys::ncclAllGather(raw, gathered as *mut c_void, 256, kind, own.comm, own.raw()));
        settle(&own.stream);
        assert!(read(gathered, 4 * 1024).chunks(1024).zip(0..).all(|(part, rank)| part.iter().all(|&byte| byte == rank)));
        ok(sys::ncclBroadcast(raw, raw, 256, kind, 2, own.comm, own.raw()));
        settle(&own.stream);
        assert!(read(at, 1024).iter().all(|&byte| byte == 2));
        free(gathered);
    }
    free(at);
    own.end();
}

/// Two communicators of two ranks each, in the other order.
fn split() {
    let own = start();
    let mut comm = std::ptr::null_mut();
    let (color, key) = ((own.number % 2) as i32, -(own.number as i32));
    // SAFETY: a place to write.
    ok(unsafe { sys::ncclCommSplit(own.comm, color, key, &raw mut comm, std::ptr::null_mut()) });
    let half = Rank { number: 1 - own.number / 2, ranks: 2, comm, stream: own.stream.clone() };
    let mut told = -1;
    // SAFETY: a place to write.
    ok(unsafe { sys::ncclCommUserRank(comm, &raw mut told) });
    assert_eq!(told, half.number as i32);
    let (from, to) = (filled(own.number as u8, 64), filled(9, 64));
    ok(group(|| {
        ok(half.send(from, 64, 1 - half.number));
        ok(half.receive(to, 64, 1 - half.number));
    }));
    settle(&own.stream);
    assert_eq!(usize::from(read(to, 64)[0]), (own.number + 2) % 4);
    free(from);
    free(to);
    half.end();
    own.end();
}

type Register = unsafe extern "C" fn(sys::ncclComm_t, *mut c_void, usize, *mut *mut c_void, i32) -> u32;
type Deregister = unsafe extern "C" fn(sys::ncclComm_t, *mut c_void) -> u32;
type Put =
    unsafe extern "C" fn(*const c_void, usize, u32, i32, *mut c_void, usize, i32, i32, u32, sys::ncclComm_t, sys::cudaStream_t) -> u32;
type Wait = unsafe extern "C" fn(i32, *const [i32; 4], sys::ncclComm_t, sys::cudaStream_t) -> u32;

/// Everyone writes into everyone's window, and waits for all of them.
fn put() {
    let own = start();
    // SAFETY: NCCL's types, and memory of our own.
    unsafe {
        let register: Register = function("ncclCommWindowRegister").unwrap();
        let deregister: Deregister = function("ncclCommWindowDeregister").unwrap();
        let (put, wait): (Put, Wait) = (function("ncclPutSignal").unwrap(), function("ncclWaitSignal").unwrap());
        let mut memory = [std::ptr::null_mut(); 2];
        let mut windows = [std::ptr::null_mut(); 2];
        for (at, bytes) in [BYTES, BYTES * own.ranks].into_iter().enumerate() {
            ok(sys::ncclMemAlloc(&raw mut memory[at], bytes));
            assert_eq!(register(own.comm, memory[at], bytes, &raw mut windows[at], 1), 0);
        }
        result::memset_d8_async(memory[0] as u64, own.number as u8 + 1, BYTES, own.stream.cu_stream()).unwrap();
        let [mine, place] = [memory[0], windows[1]];
        for peer in 0..own.ranks {
            assert_eq!(put(mine, BYTES, 1, peer as i32, place, own.number * BYTES, 0, 0, 0, own.comm, own.raw()), 0);
        }
        let all: Vec<[i32; 4]> = (0..own.ranks as i32).map(|peer| [1, peer, 0, 0]).collect();
        assert_eq!(wait(all.len() as i32, all.as_ptr(), own.comm, own.raw()), 0);
        settle(&own.stream);
        assert!(read(memory[1] as u64, BYTES * own.ranks).chunks(BYTES).zip(1..).all(|(part, by)| part.iter().all(|&byte| byte == by)));
        // Neither another signal, nor memory that is no window, nor one of the driver's.
        assert_eq!(put(mine, BYTES, 1, 0, place, 0, 1, 0, 0, own.comm, own.raw()), Code::ncclInvalidArgument as u32);
        let other = filled(0, BYTES);
        assert_eq!(put(other as *const c_void, BYTES, 1, 0, place, 0, 0, 0, 0, own.comm, own.raw()), Code::ncclInvalidArgument as u32);
        let mut none = std::ptr::null_mut();
        assert_eq!(register(own.comm, other as *mut c_void, BYTES, &raw mut none, 1), Code::ncclUnhandledCudaError as u32);
        free(other);
        for at in 0..2 {
            assert_eq!(deregister(own.comm, windows[at]), 0);
            ok(sys::ncclMemFree(memory[at]));
        }
    }
    own.end();
}

/// Rank 0 sends more than rank 1 receives.
fn mismatch() {
    let own = start();
    let at = filled(0, BYTES);
    ok(if own.number == 0 { own.send(at, BYTES, 1) } else { own.receive(at, BYTES / 2, 0) });
    settle(&own.stream);
    free(at);
    own.end();
}

/// Each sends to the next one.
fn ring() {
    let own = start();
    let (from, to) = (filled(1, 64), filled(0, 64));
    ok(group(|| {
        ok(own.send(from, 64, (own.number + 1) % own.ranks));
        ok(own.receive(to, 64, (own.number + own.ranks - 1) % own.ranks));
    }));
    settle(&own.stream);
    free(from);
    free(to);
    own.end();
}

/// A ring of which one call never ends: until the error is there or a while is over, then all abort.
fn waits() {
    let own = start();
    let (from, to) = (filled(1, 64), filled(0, 64));
    ok(group(|| {
        ok(own.send(from, 64, (own.number + 1) % own.ranks));
        ok(own.receive(to, 64, (own.number + own.ranks - 1) % own.ranks));
    }));
    let since = Instant::now();
    while own.error() == Code::ncclSuccess && since.elapsed() < Duration::from_millis(300) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: asks a stream.
    let busy = unsafe { driver::cuStreamQuery(own.stream.cu_stream()) }.result().is_err();
    println!("rank {} {:?} busy {busy}", own.number, own.error());
    own.abort();
    free(from);
    free(to);
}

fn fails_to_begin() {
    let (_, _stream) = device(0);
    let mut comm = std::ptr::null_mut();
    // SAFETY: a place to write.
    let failed = unsafe { sys::ncclCommInitRank(&raw mut comm, 1, id(), 0) };
    // SAFETY: a text of the library.
    let why = unsafe { std::ffi::CStr::from_ptr(sys::ncclGetLastError(std::ptr::null_mut())) };
    println!("{failed:?}: {why:?}");
}

/// One that does not block is asked until it is there, and after each call.
fn does_not_block() {
    let (rank, ranks) = (number(RANK), number(RANKS));
    let (_, stream) = device(rank);
    let mut comm = std::ptr::null_mut();
    // The beginning of `ncclConfig_t`: size, magic, version, whether it blocks; the rest as if not said.
    let mut config = [0x8000_0000_8000_0000_u64; 16];
    config[..3].copy_from_slice(&[128, 22_907 << 32 | 0xcafe_beef, 0x8000_0000 << 32]);
    // SAFETY: a place to write, and a configuration of 128 bytes.
    let first = unsafe { sys::ncclCommInitRankConfig(&raw mut comm, ranks as i32, id(), rank as i32, config.as_mut_ptr().cast()) };
    assert_eq!(first, Code::ncclInProgress);
    let own = Rank { number: rank, ranks, comm, stream };
    let until_there = || {
        while own.error() == Code::ncclInProgress {
            std::thread::sleep(Duration::from_millis(1));
        }
        ok(own.error());
    };
    until_there();
    let (from, to) = (filled(1, 64), filled(0, 64));
    let code = group(|| {
        ok(own.send(from, 64, (own.number + 1) % own.ranks));
        ok(own.receive(to, 64, (own.number + own.ranks - 1) % own.ranks));
    });
    assert_eq!(code, Code::ncclInProgress);
    until_there();
    settle(&own.stream);
    free(from);
    free(to);
    own.end();
}

/// Rank 1 ends without a word; rank 0 waits for it.
fn dies() {
    let own = start();
    if own.number == 1 {
        std::process::exit(0);
    }
    let to = filled(0, 64);
    ok(own.receive(to, 64, 1));
    let since = Instant::now();
    while own.error() == Code::ncclSuccess && since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{:?}", own.error());
    own.abort();
    free(to);
}

const NONE: Vec<String> = Vec::new();

/// Bytes from rank to rank.
fn bytes(told: &Told) -> BTreeMap<&str, u64> {
    told.moved.iter().map(|(between, tally)| (between.as_str(), tally.bytes)).collect()
}

#[test]
fn four_ranks_exchange_what_they_were_told_to() {
    let (_, nccl, cuda) = together("exchange", 4, &[]);
    assert_eq!((&nccl.violations, &cuda.violations), (&NONE, &NONE));
    assert_eq!((nccl.processes, nccl.moved.len()), (4, 16));
    assert!(bytes(&nccl).values().all(|&bytes| bytes == 3 * 50 * (1 << 14)), "{:?}", nccl.moved);
    assert_eq!(bytes(&cuda).get("gpu3->gpu0"), Some(&(3 * 50 * (1 << 14))));
    assert_eq!((nccl.calls("ncclSend"), nccl.calls("ncclRecv"), nccl.calls("ncclGroupEnd")), (2400, 2400, 12));
}

#[test]
fn ranks_reduce_gather_broadcast_and_split() {
    for case in ["reduce", "split"] {
        let (_, nccl, cuda) = together(case, 4, &[]);
        assert_eq!((nccl.violations, cuda.violations), (NONE, NONE), "{case}");
    }
}

#[test]
fn puts_arrive_before_their_signals() {
    let (_, nccl, cuda) = together("put", 4, &[]);
    assert_eq!((&nccl.violations, &cuda.violations), (&NONE, &NONE));
    assert!(nccl.moved.len() == 16 && bytes(&nccl).values().all(|&bytes| bytes == 1 << 20), "{:?}", nccl.moved);
}

#[test]
fn an_older_nccl_has_no_puts() {
    let folder = without(&["nccl"], &["ncclPutSignal"]);
    std::os::unix::fs::symlink(folder.path().join("libnccl.so.2"), folder.path().join("libnccl.so")).unwrap();
    together("no put", 1, &[("LD_LIBRARY_PATH", folder.path().to_str().unwrap())]);
}

#[test]
fn a_send_that_its_receive_does_not_fit_is_told() {
    let (_, nccl, _) = together("mismatch", 2, &[]);
    assert_eq!(nccl.violations, ["rank 0 sent 1048576 bytes of type 1 (call 0) where rank 1 received 524288 of type 1 (call 0)"]);
}

#[test]
fn what_hangs_ends_when_it_is_aborted() {
    let hangs = "[[nccl.fail]]\ncall = \"ncclSend\"\nerror = \"hang\"\nranks = \"0\"";
    let (said, nccl, cuda) = together("waits", 3, &[(ALSO, hangs)]);
    let busy = |rank: usize| said[rank].contains(&format!("rank {rank} ncclSuccess busy true"));
    // Rank 0's send is waited for by rank 1 alone; rank 2 has what it wants.
    assert_eq!([busy(0), busy(1), busy(2)], [true, true, false], "{said:?}");
    assert_eq!((nccl.violations, cuda.violations), (NONE, NONE));
}

#[test]
fn errors_come_at_once_or_when_a_stream_gets_there() {
    let late = "[[nccl.fail]]\ncall = \"ncclRecv\"\nerror = \"ncclRemoteError\"\nlate = true\nranks = \"1\"";
    let (said, ..) = together("waits", 2, &[(ALSO, late)]);
    assert!(said[1].contains("rank 1 ncclRemoteError busy true"), "{said:?}");
    let now = "[[nccl.fail]]\ncall = \"ncclCommInitRank\"\nerror = \"ncclSystemError\"";
    let (said, ..) = together("fails to begin", 1, &[(ALSO, now)]);
    assert!(said[0].contains("ncclSystemError: \"ncclCommInitRank was told to fail\""), "{said:?}");
}

#[test]
fn a_communicator_that_does_not_block_is_busy_first() {
    let (_, nccl, cuda) = together("does not block", 2, &[]);
    assert_eq!((nccl.violations, cuda.violations), (NONE, NONE));
}

#[test]
fn a_rank_that_ended_is_an_error_over_a_network_alone() {
    let over = "[[nccl.via]]\nfrom = \"0-1\"\nto = \"0-1\"\nvia = \"NET/IB/0/GDRDMA\"";
    assert!(together("dies", 2, &[(ALSO, over)]).0[0].contains("ncclRemoteError"));
    assert!(together("dies", 2, &[]).0[0].contains("ncclSuccess"));
}

#[test]
fn the_log_names_the_ways() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.%h.%p");
    let log = |set: &[(&str, &str)]| {
        let mut all = vec![("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_FILE", file.to_str().unwrap())];
        all.extend(set);
        together("ring", 3, &all);
        let mut lines: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            lines.extend(text.lines().filter_map(|line| line.find("Channel").map(|at| line[at..].to_owned())));
            std::fs::remove_file(path).unwrap();
        }
        lines.sort();
        lines
    };
    let direct = [
        "Channel 00/1 : 0[0] -> 1[1] via P2P/CUMEM",
        "Channel 00/1 : 1[1] -> 2[2] via P2P/CUMEM",
        "Channel 00/1 : 2[2] -> 0[0] via P2P/CUMEM",
    ];
    assert_eq!(log(&[]), direct);
    let staged = direct.map(|line| line.replace("00/1", "00").replace("P2P/CUMEM", "SHM/direct/direct"));
    assert_eq!(log(&[(ALSO, "cuda.p2p = false")]), staged);
    let over = log(&[(ALSO, "[[nccl.via]]\nfrom = \"0\"\nto = \"1\"\nvia = \"NET/IB/0/GDRDMA\"")]);
    assert_eq!(over[0], "Channel 00/1 : 0[0] -> 1[1] [receive] via NET/IB/0/GDRDMA");
    assert_eq!(over[1], "Channel 00/1 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA");
    assert_eq!(over.len(), 4);
}
